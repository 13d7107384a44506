// Who did what.
import { call } from "../api.js";
import { html, useState } from "../html.js";
import { t } from "../i18n.js";
import { useLoad } from "../live.js";
import { Card, Empty, Head, Loaded, Table, Time, Work } from "../ui.js";

const PAGE = 50;

export function AuditLog() {
  const first = useLoad(async () => (await call("GET", "/operator/audit")).data, []);
  const accounts = useLoad(async () => (await call("GET", "/operator/overview")).data.accounts, []);
  const [more, setMore] = useState([]);
  const [ended, setEnded] = useState(false);
  const nameOf = (id) => accounts.data?.find((account) => account.id === id)?.name ?? id;
  return html`
    <div class="stack">
      <${Head} title=${t("Audit log")} text=${t("Who did what in the panel, newest first; kept for a year.")} />
      <${Loaded} state=${first}>${(newest) => {
        const rows = [...newest, ...more];
        const older = async () => {
          const { data } = await call("GET", `/operator/audit?before=${rows.at(-1).id}`);
          setMore([...more, ...data]);
          setEnded(data.length < PAGE);
        };
        return html`<${Card}>${
          rows.length === 0
            ? html`<${Empty} title=${t("Nothing yet")} />`
            : html`<${Table} caption=${t("Audit log")} rows=${rows} columns=${[
              [t("What"), (row) => html`<span class="mono break">${row.action}</span>`],
              [t("Who"), (row) => row.login ?? "–"],
              [t("Account"), (row) =>
                row.accountId ? nameOf(row.accountId) : html`<span class="soft">${t("Gateway")}</span>`],
              [t("Address"), (row) =>
                html`<span class="mono">${row.address}</span>`],
              [t("When"), (row) => html`<${Time} at=${row.at} />`],
            ]} />`
        }
      ${
          !ended && newest.length === PAGE &&
          html`<footer class="filters"><span class="grow"></span><${Work} run=${older}>${t("Older")}</${Work}></footer>`
        }</${Card}>`;
      }}</${Loaded}>
      </div>
  `;
}
