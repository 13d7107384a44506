// The gateway at a glance: what runs, what waits, how much disk space is left; and the failed deliveries of all accounts.
import { api } from "../api.js";
import { html } from "../html.js";
import { bytes, number, said, t, when } from "../i18n.js";
import { useAttention, useData, useEvery } from "../live.js";
import { Attention } from "../attention.js";
import { href } from "../router.js";
import { accountColumn, Card, Facts, Head, Loaded, rowLink, TableCard, Time, timeAt, toast, Work } from "../ui.js";
import { AccountTable, NewAccount } from "./gateway_accounts.js";

/** Queues, memory and disk change without an event. */
const POLL_MS = 15_000;

export function Gateway() {
  const overview = useData("/operator/overview", ["lines"]);
  useEvery(POLL_MS, overview.reload);
  const attention = useAttention("/operator");
  return html`<${Loaded} state=${overview}>${(data) => {
    const lines = data.accounts.reduce((sum, account) => sum + account.lines, 0);
    const connected = data.accounts.reduce((sum, account) => sum + account.connected, 0);
    const figures = [
      [t("Accounts"), number(data.accounts.length), ""],
      [t("Lines connected"), number(connected), t("of {limit}", { limit: number(lines) })],
      [t("Messages waiting"), number(data.queued), ""],
    ];
    // A store on a server monitors its own disk.
    const { freeBytes, totalBytes, storeBytes } = data.disk ?? {};
    if (data.disk) {
      figures.push([t("Free disk space"), bytes(freeBytes), t("of {limit}", { limit: bytes(totalBytes) })]);
    }
    return html`
      <div class="stack">
        <${Head} title=${t("Gateway")} text=${t("Paloma {version}, up since {time}", {
          version: data.version,
          time: when(data.startedAt),
        })}>
          <${NewAccount} reload=${overview.reload} />
          </${Head}>
          <${Attention} items=${attention?.items ?? []} more=${attention?.more} />
          <div class="grid">${figures.map(([name, value, of]) =>
            html`
              <div class="card">
                <dl class="pad figure">
                  <dt>${name}</dt>
                  <dd>${value} <small>${of}</small></dd>
                </dl>
              </div>
            `
          )}</div>
          <${Card} title=${t("Accounts")} actions=${html`<a href=${href("/gateway/accounts")}>${t("See all")}</a>`}>
            <${AccountTable} rows=${data.accounts.slice(0, 8)} />
            </${Card}>
            <${Card} title=${t("System")} pad>
              <${Facts} facts=${[
                [t("Version"), data.version],
                ["Deno", data.deno],
                [t("WhatsApp Web version"), data.webVersion ?? t("the latest")],
                [t("Memory"), bytes(data.memoryBytes)],
                data.disk && [t("Data size"), bytes(storeBytes)],
                [t("Running since"), html`<${Time} at=${data.startedAt} />`],
              ]} />
              </${Card}>
              </div>
    `;
  }}</${Loaded}>`;
}

export function Deliveries() {
  const failed = useData("/operator/deliveries");
  return html`
    <div class="stack">
      <${Head} title=${t("Failed deliveries")}
        text=${t("Events that could not be delivered after all retries.")} />
      <${TableCard} state=${failed} caption=${t("Failed deliveries")} keyOf=${(row) => row.webhookId + row.id}
        empty=${[t("No failed deliveries"), t("Every event was delivered or is being retried.")]} columns=${[
          [
            t("Event"),
            ({ accountId, webhookId, event }) =>
              rowLink(`/accounts/${accountId}/webhooks/${webhookId}?status=failed`, event, "mono"),
          ],
          accountColumn(),
          [t("Address"), (row) => html`<span class="clip">${row.url}</span>`],
          [
            t("Last answer"),
            ({ attempts }) =>
              html`<span class="small break">${attempts.at(-1)?.status ?? said(attempts.at(-1)?.error) ?? "–"}</span>`,
          ],
          [t("Time"), timeAt("createdAt")],
          ["", (row) =>
            html`
              <${Work} kind="small" run=${async () => {
                await api(row.accountId, "POST", `/webhooks/${row.webhookId}/deliveries/${row.id}/redeliver`);
                toast(t("Redelivery scheduled."));
                await failed.reload();
              }}>${t("Redeliver")}</${Work}>
            `, "end"],
        ]} />
    </div>
  `;
}
