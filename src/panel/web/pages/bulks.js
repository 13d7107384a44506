// The bulks of an account, newest first, each with its progress.
import { api } from "../api.js";
import { html } from "../html.js";
import { number, t } from "../i18n.js";
import { useEvery, useLines, useLoad } from "../live.js";
import { href } from "../router.js";
import { Badge, Card, Empty, Head, Loaded, Pages, Table, Time } from "../ui.js";
import { Done, Progress } from "./bulk.js";

const LIMIT = 20;
const POLL_MS = 5_000;

export function Bulks({ account, query }) {
  const page = Number(query.page ?? 1);
  const lines = useLines(account);
  const bulks = useLoad(() => api(account, "GET", `/bulks?page=${page}&limit=${LIMIT}`), [account, page], ["messages"]);
  // An accepted bulk causes no event until its first message leaves.
  useEvery(POLL_MS, bulks.reload);
  const nameOf = (id) => lines.data?.find(({ _id }) => _id === id)?.name ?? "–";
  return html`
    <div class="stack">
      <${Head} title=${t("Bulks")} text=${t("Many messages submitted at once, sent one after another.")} />
      <${Card}>
        <${Loaded} state=${bulks}>${({ data: rows, pagination: { total } }) =>
          html`${
            total === 0
              ? html`
                <${Empty} title=${t("No bulks yet")}>
                  <p>${t("Messages that your systems send with POST /v1/messages/send/bulk appear here.")}</p>
                  </${Empty}>
              `
              : html`<${Table} caption=${t("Bulks")} rows=${rows} keyOf=${(row) => row.bulkId} columns=${[
                [t("Messages"), (row) =>
                  html`<a class="main" href=${href(`/accounts/${account}/bulks/${row.bulkId}`)}>${
                    t("Bulk of {n}", { n: number(row.total) })
                  }</a>`],
                [t("Progress"), (row) => html`<${Progress} ...${row} />`],
                [t("Sent"), (row) =>
                  number(row.sent)],
                [t("Failed"), (row) =>
                  row.failed > 0 ? html`<${Badge} kind="bad">${number(row.failed)}</${Badge}>` : "0"],
                [t("Estimated end"), (row) =>
                  html`<${Done} ...${row} />`],
                [t("Line"), (row) =>
                  html`<span class="clip">${nameOf(row.sessionId)}</span>`],
                [t("Accepted"), (row) => html`<${Time} at=${row.createdAt} />`],
              ]} />`
          }
          <${Pages} page=${page} next=${page * LIMIT < total ? page + 1 : null} text=${
            t("{n} in total", { n: number(total) })
          } />`}</${Loaded}>
      </${Card}>
    </div>
  `;
}
