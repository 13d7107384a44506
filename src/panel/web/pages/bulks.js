// The bulks of an account, newest first, each with its progress; and one bulk, with cancelling it.
import { api } from "../api.js";
import { html } from "../html.js";
import { number, t } from "../i18n.js";
import { useApi, useEvery, useLines, useLoad } from "../live.js";
import { href } from "../router.js";
import { Ask, Badge, Card, Head, Loaded, Pages, Table, Time, timeAt, toast } from "../ui.js";

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
      <${Head} title=${t("Bulks")} text=${t("Many messages submitted at once, sent one after another.")}>
        <a class="button primary" href=${href(`/accounts/${account}/bulks/new`)}>${t("New bulk")}</a></${Head}>
      <${Card}>
        <${Loaded} state=${bulks}>${({ data: rows, pagination }) =>
          html`
            <${Table} caption=${t("Bulks")} rows=${rows} keyOf=${(row) => row.bulkId} empty=${pagination.total === 0 &&
              [
                t("No bulks yet"),
                t("Drop a CSV file on “New bulk”. What your systems send with POST /v1/messages/send/bulk appears here, too."),
              ]} columns=${[
              [t("Messages"), (row) =>
                html`<a class="main" href=${href(`/accounts/${account}/bulks/${row.bulkId}`)}>${
                  t("Bulk of {n}", { n: number(row.total) })
                }</a>`],
              [t("Progress"), (row) =>
                html`<${Progress} ...${row} />`],
              [t("Sent"), (row) =>
                number(row.sent)],
              [
                t("Failed"),
                (row) => row.failed > 0 ? html`<${Badge} kind="bad">${number(row.failed)}</${Badge}>` : "0",
              ],
              [t("Estimated end"), (row) => html`<${Done} ...${row} />`],
              [t("Line"), (row) => html`<span class="clip">${nameOf(row.sessionId)}</span>`],
              [t("Accepted"), timeAt("createdAt")],
            ]} />
            <${Pages} ...${pagination} text=${t("{n} in total", { n: number(pagination.total) })} />
          `}</${Loaded}>
      </${Card}>
    </div>
  `;
}

export function Bulk({ account, bulk: id }) {
  const bulk = useApi(account, `/bulks/${id}`, ["messages"]);
  const cancel = async () => {
    await api(account, "DELETE", `/bulks/${id}`);
    toast(t("The waiting messages were cancelled."));
    await bulk.reload();
  };
  return html`<${Loaded} state=${bulk} back=${[`/accounts/${account}/bulks`, t("Bulks")]}>${(
    { total, queued, sent, failed, eta, sessionId, createdAt },
  ) =>
    html`
      <div class="stack">
        <${Head} back=${[`/accounts/${account}/bulks`, t("Bulks")]} title=${t("Bulk of {n}", {
          n: number(total),
        })}>
            ${queued > 0 && html`
              <${Ask} title=${t("Cancel the waiting messages?")} button=${t("Cancel waiting messages")} run=${cancel}
                text=${t("{n} messages will not be sent and no longer count towards the quota.", {
                  n: number(queued),
                })}>${t("Cancel waiting messages")}</${Ask}>
            `}
          </${Head}>
          <${Card} pad title=${t("Progress")}><div class="stack">
            <${Progress} total=${total} queued=${queued} sent=${sent} failed=${failed} />
            <dl class="facts"><dt>${t("Sent")}</dt><dd>${number(sent)}</dd><dt>${t("Failed")}</dt><dd>${number(
              failed,
            )}</dd><dt>${t("Waiting")}</dt><dd>${number(queued)}</dd>
              <dt>${t("Estimated end")}</dt><dd><${Done} queued=${queued} eta=${eta} /></dd><dt>${t(
                "Accepted",
              )}</dt><dd><${Time} at=${createdAt} /></dd><dt>${t(
                "ID",
              )}</dt><dd class="mono">${id}</dd></dl>
            <div class="row"><a class="button" href=${href(`/accounts/${account}/messages?bulkId=${id}`)}>${t(
              "Show messages",
            )}</a>
              <a class="button" href=${href(`/accounts/${account}/lines/${sessionId}`)}>${t(
                "Show line",
              )}</a></div></div></${Card}>
        </div>
    `}</${Loaded}>`;
}

/** When the last message of a bulk is expected to leave. */
function Done({ queued, eta }) {
  if (queued > 0 && eta) return html`<${Time} at=${eta} />`;
  return html`<span class="soft">${queued > 0 ? t("the line is not sending") : t("done")}</span>`;
}

/** How much of a bulk has left, and how much of it failed. */
function Progress({ total, queued, sent, failed }) {
  const of = (n) => Math.round(n / Math.max(1, total) * 1000) / 10;
  const words = t("{sent} sent, {failed} failed, {queued} waiting", {
    sent: number(sent),
    failed: number(failed),
    queued: number(queued),
  });
  return html`
    <svg class="progress" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label=${words}>
      <rect class="sent" width=${of(sent)} height="4" />
      <rect class="failed" x=${of(sent)} width=${of(failed)} height="4" />
    </svg>
  `;
}
