// The gateway at a glance: what runs, what waits, how much disk space is left; and the failed deliveries of all accounts.
import { api } from "../api.js";
import { html } from "../html.js";
import { bytes, number, said, t, when } from "../i18n.js";
import { useAttention, useData, useEvery } from "../live.js";
import { Attention } from "../attention.js";
import { href } from "../router.js";
import { Card, Head, Loaded, Table, Time, timeAt, toast, Work } from "../ui.js";
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
              <dl class="facts">
              <dt>${t("Version")}</dt><dd>${data.version}</dd><dt>Deno</dt><dd>${data.deno}</dd>
              <dt>${t("WhatsApp Web version")}</dt><dd>${data.webVersion ?? t("the latest")}</dd>
              <dt>${t("Memory")}</dt><dd>${bytes(data.memoryBytes)}</dd>
              ${data.disk && html`
                <dt>${t("Data size")}</dt>
                <dd>${bytes(storeBytes)}</dd>
              `}
              <dt>${t("Running since")}</dt><dd><${Time} at=${data.startedAt} /></dd></dl>
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
      <${Loaded} state=${failed}>${(rows) =>
        html`
          <${Card}>
            <${Table} caption=${t("Failed deliveries")} rows=${rows} keyOf=${(row) => row.webhookId + row.id}
              empty=${[t("No failed deliveries"), t("Every event was delivered or is being retried.")]} columns=${[
                [t("Event"), (row) =>
                  html`<a class="main mono" href=${
                    href(`/accounts/${row.accountId}/webhooks/${row.webhookId}?status=failed`)
                  }>${row.event}</a>`],
                [
                  t("Account"),
                  (row) =>
                    html`<a class="break" href=${href(`/accounts/${row.accountId}`)}>${row.accountName}</a>`,
                ],
                [t("Address"), (row) =>
                  html`<span class="clip">${row.url}</span>`],
                [t("Last answer"), (row) =>
                  html`<span class="small break">${
                    row.attempts.at(-1)?.status ?? said(row.attempts.at(-1)?.error) ?? "–"
                  }</span>`],
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
            </${Card}>
        `}</${Loaded}>
      </div>
  `;
}
