// One bulk: its progress, and cancelling it.
import { api } from "../api.js";
import { html } from "../html.js";
import { number, t } from "../i18n.js";
import { useApi } from "../live.js";
import { href } from "../router.js";
import { Ask, Card, Head, Loaded, Time, toast } from "../ui.js";

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
                text=${html`<p>${
                  t("{n} messages will not be sent and no longer count towards the quota.", { n: number(queued) })
                }</p>`}>${t("Cancel waiting messages")}</${Ask}>
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
export function Done({ queued, eta }) {
  if (queued > 0 && eta) return html`<${Time} at=${eta} />`;
  return html`<span class="soft">${queued > 0 ? t("the line is not sending") : t("done")}</span>`;
}

/** How much of a bulk has left, and how much of it failed. */
export function Progress({ total, queued, sent, failed }) {
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
