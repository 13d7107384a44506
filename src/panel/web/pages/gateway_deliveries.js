// Failed deliveries of all accounts.
import { html } from "../html.js";
import { said, t } from "../i18n.js";
import { useData } from "../live.js";
import { href } from "../router.js";
import { Card, Empty, Head, Loaded, Table, Time } from "../ui.js";

export function Deliveries() {
  const failed = useData("/operator/deliveries");
  return html`
    <div class="stack">
      <${Head} title=${t("Failed deliveries")} text=${t(
        "Events that could not be delivered after all retries.",
      )} />
      <${Loaded} state=${failed}>${(rows) =>
        html`<${Card}>${
          rows.length === 0
            ? html`
              <${Empty} title=${t("No failed deliveries")}>
                <p>${t("Every event was delivered.")}</p>
                </${Empty}>
            `
            : html`<${Table} caption=${t("Failed deliveries")} rows=${rows} keyOf=${(row) =>
              row.webhookId + row.id} columns=${[
              [t("Event"), (row) =>
                html`<a class="main mono" href=${
                  href(`/accounts/${row.accountId}/webhooks/${row.webhookId}?status=failed`)
                }>${row.event}</a>`],
              [t("Account"), (row) => html`<span class="break">${row.accountName}</span>`],
              [t("Address"), (row) =>
                html`<span class="clip">${row.url}</span>`],
              [t("Last answer"), (row) =>
                html`<span class="small break">${
                  row.attempts.at(-1)?.status ?? said(row.attempts.at(-1)?.error) ?? "–"
                }</span>`],
              [t("Time"), (row) =>
                html`<${Time} at=${row.createdAt} />`],
            ]} />`
        }</${Card}>`}</${Loaded}>
      </div>
  `;
}
