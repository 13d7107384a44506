// The lines of all accounts, those in trouble first.
import { html } from "../html.js";
import { said, t } from "../i18n.js";
import { byTrouble, LineState } from "../line_state.js";
import { useData } from "../live.js";
import { href } from "../router.js";
import { Card, Empty, Head, Loaded, Table, Time } from "../ui.js";
import { phone } from "../words.js";

export function AllLines() {
  const lines = useData("/operator/lines", ["lines"]);
  return html`
    <div class="stack">
      <${Head} title=${t("All lines")} text=${t("The lines of all accounts, those with problems first.")} />
      <${Loaded} state=${lines}>${(rows) =>
        html`<${Card}>${
          rows.length === 0
            ? html`
              <${Empty} title=${t("No lines yet")}>
                <p>${t("Lines are linked on each account's pages.")}</p>
                </${Empty}>
            `
            : html`<${Table} caption=${t("All lines")} rows=${byTrouble(rows)} columns=${[
              [
                t("Name"),
                (row) =>
                  html`<a class="main break" href=${
                    href(`/accounts/${row.accountId}/lines/${row.id}`)
                  }>${row.name}</a>`,
              ],
              [
                t("Account"),
                (row) => html`<a class="break" href=${href(`/accounts/${row.accountId}`)}>${row.accountName}</a>`,
              ],
              [t("Status"), (row) => html`<${LineState} line=${row} />`],
              [t("Number"), (row) => row.phone ? html`<span class="nowrap">${phone(row.phone)}</span>` : "–"],
              [t("Reason"), (row) => row.reason ? html`<span class="soft small break">${said(row.reason)}</span>` : ""],
              [t("Last used"), (row) => html`<${Time} at=${row.lastUsed} />`],
            ]} />`
        }</${Card}>`}</${Loaded}>
      </div>
  `;
}
