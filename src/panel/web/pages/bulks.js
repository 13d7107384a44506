// The bulks of an account, newest first, each with its progress; and one bulk, with cancelling it.
import { api } from "../api.js";
import { html } from "../html.js";
import { number, t } from "../i18n.js";
import { useApi, useEvery, useLines, usePage } from "../live.js";
import { href } from "../router.js";
import { Ask, Badge, Card, Facts, Head, Loaded, rowLink, TablePage, Time, timeAt, toast } from "../ui.js";

const LIMIT = 20;
const POLL_MS = 5_000;

export function Bulks({ account, query }) {
  const lines = useLines(account);
  const bulks = usePage(account, "/bulks", { page: query.page, limit: LIMIT, topics: ["messages"] });
  // An accepted bulk causes no event until its first message leaves.
  useEvery(POLL_MS, bulks.reload);
  const nameOf = (id) => lines.data?.find(({ _id }) => _id === id)?.name ?? "–";
  return html`
    <div class="stack">
      <${Head} title=${t("Bulks")} text=${t("Many messages submitted at once, sent one after another.")}>
        <a class="button primary" href=${href(`/accounts/${account}/bulks/new`)}>${t("New bulk")}</a></${Head}>
      <${Card}>
        <${TablePage} state=${bulks} caption=${t("Bulks")} keyOf=${(row) => row.bulkId} empty=${[
          t("No bulks yet"),
          t("Drop a CSV file on “New bulk”. What your systems send with POST /v1/messages/send/bulk appears here, too."),
        ]} columns=${[
          [
            t("Messages"),
            ({ bulkId, total }) =>
              rowLink(`/accounts/${account}/bulks/${bulkId}`, t("Bulk of {n}", { n: number(total) })),
          ],
          [t("Progress"), (row) => html`<${Progress} ...${row} />`],
          [t("Sent"), (row) => number(row.sent)],
          [t("Failed"), (row) => row.failed > 0 ? html`<${Badge} kind="bad">${number(row.failed)}</${Badge}>` : "0"],
          [t("Estimated end"), (row) => html`<${Done} ...${row} />`],
          [t("Line"), (row) => html`<span class="clip">${nameOf(row.sessionId)}</span>`],
          [t("Accepted"), timeAt("createdAt")],
        ]} textOf=${(total) => t("{n} in total", { n: number(total) })} />
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
  const back = [`/accounts/${account}/bulks`, t("Bulks")];
  return html`<${Loaded} state=${bulk} back=${back}>${({ total, queued, sent, failed, eta, sessionId, createdAt }) =>
    html`
      <div class="stack">
        <${Head} back=${back} title=${t("Bulk of {n}", { n: number(total) })}>
          ${queued > 0 && html`
            <${Ask} title=${t("Cancel the waiting messages?")} button=${t("Cancel waiting messages")} run=${cancel}
              text=${t("{n} messages will not be sent and no longer count towards the quota.", {
                n: number(queued),
              })} />
          `}
        </${Head}>
        <${Card} title=${t("Progress")} pad="stack">
          <${Progress} total=${total} queued=${queued} sent=${sent} failed=${failed} />
          <${Facts} facts=${[
            [t("Sent"), number(sent)],
            [t("Failed"), number(failed)],
            [t("Waiting"), number(queued)],
            [t("Estimated end"), html`<${Done} queued=${queued} eta=${eta} />`],
            [t("Accepted"), html`<${Time} at=${createdAt} />`],
            [t("ID"), id, "mono"],
          ]} />
          <div class="row">
            <a class="button" href=${href(`/accounts/${account}/messages?bulkId=${id}`)}>${t("Show messages")}</a>
            <a class="button" href=${href(`/accounts/${account}/lines/${sessionId}`)}>${t("Show line")}</a>
          </div>
        </${Card}>
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
