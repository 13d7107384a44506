// An account at a glance: remaining set-up steps, the quota, the last thirty days, and the lines.
import { html } from "../html.js";
import { number, t } from "../i18n.js";
import { useApi, useAttention, useData, useLines } from "../live.js";
import { Attention } from "../attention.js";
import { href } from "../router.js";
import { Card, Empty, Head, Loaded } from "../ui.js";
import { byTrouble, LineState, phone } from "../words.js";

const DAYS = 30;

export function Overview({ account }) {
  const base = `/accounts/${account}`;
  const about = useApi(account, "/account", ["messages"]);
  const lines = useLines(account);
  const webhooks = useApi(account, "/webhooks", ["webhooks"]);
  const attention = useAttention(base);
  const usage = useData(`${base}/usage?days=${DAYS}`, ["messages"]);
  return html`
    <div class="stack">
      <${Loaded} state=${about} back=${["/", t("Back to home")]}>${(data) =>
        html`
          <${Head} title=${data.name} text=${t("Plan {plan}", { plan: data.plan.name })}>
            <a class="button primary" href=${href(`${base}/send`)}>${t("Send a message")}</a>
            </${Head}>
            <${Attention} items=${attention?.items ?? []} base=${base} />
            <${Steps} base=${base} lines=${lines.data} webhooks=${webhooks.data} sent=${data.used.monthly} />
            <div class="grid">
              <${Quota} name=${t("Messages today (UTC)")} used=${data.used.daily} limit=${data.plan.daily} />
              <${Quota} name=${t("Messages this month (UTC)")} used=${data.used.monthly} limit=${data.plan.monthly} />
              <${Quota} name=${t("Lines")} used=${lines.data?.length ?? 0} limit=${data.plan.sessions} />
            </div>
            <div class="two">
              <${Card} title=${t("Last {n} days", { n: DAYS })} pad>
                <${Loaded} state=${usage}>${({ days }) => html`<${Chart} days=${days} />`}</${Loaded}></${Card}>
            <${Card} title=${t("Lines")} actions=${html`<a href=${href(`${base}/lines`)}>${t("See all")}</a>`}>
              <${Loaded} state=${lines}>${(list) =>
                list.length === 0
                  ? html`<${Empty} title=${t("No lines yet")}><a class="button" href=${href(`${base}/lines`)}>${
                    t("Link a line")
                  }</a></${Empty}>`
                  : html`<ul class="steps">${
                    byTrouble(list).slice(0, 6).map((line) =>
                      html`
                        <li key=${line._id}><span class="grow">
                          <a class="break" href=${href(`${base}/lines/${line._id}`)}>${line.name}</a><br />
                          <span class="small soft">${line.phone ? phone(line.phone) : t("not linked yet")}</span></span>
                          <${LineState} line=${line} /></li>
                      `
                    )
                  }</ul>`}</${Loaded}>
            </${Card}>
          </div>
        `}</${Loaded}>
      </div>
  `;
}

/** The next steps for a new account; hidden when all are done. */
function Steps({ base, lines, webhooks, sent }) {
  if (!lines || !webhooks) return null;
  const steps = [
    [lines.some(({ phone }) => phone), t("Link a line"), `${base}/lines`],
    [sent > 0, t("Send a message"), `${base}/send`],
    [webhooks.length > 0, t("Add a webhook to receive events"), `${base}/webhooks`],
  ];
  if (steps.every(([done]) => done)) return null;
  return html`
    <${Card} title=${t("Set up")}>
      <ol class="steps">${steps.map(([done, name, to], i) =>
        html`
          <li class=${done ? "done" : ""}><span class="tick" aria-hidden="true">${done ? "✓" : i + 1}</span>
            <a class="grow name" href=${href(to)}>${name}</a>${done &&
              html`<span class="small soft">${t("done")}</span>`}</li>
        `
      )}</ol>
      </${Card}>
  `;
}

function Quota({ name, used, limit }) {
  return html`
    <div class="card">
      <div class="pad stack tight">
        <dl class="figure"><dt>${name}</dt><dd>${number(used)} <small>${limit === null
          ? t("no limit")
          : t("of {limit}", { limit: number(limit) })}</small></dd></dl>
        ${limit !== null && html`
          <meter class="meter" aria-label=${name} min="0" max=${Math.max(1, limit)} low=${limit * 0.8} high=${limit *
            0.95} optimum="0"
            value=${used}></meter>
        `}
      </div>
    </div>
  `;
}

function Chart({ days }) {
  const known = new Map(days.map((day) => [day.day, day]));
  const all = Array.from({ length: DAYS }, (_, i) => {
    const day = new Date(Date.now() - (DAYS - 1 - i) * 86_400_000).toISOString().slice(0, 10);
    return known.get(day) ?? { day, sent: 0, failed: 0, received: 0 };
  });
  const total = (kind) => all.reduce((sum, day) => sum + day[kind], 0);
  const busiest = Math.max(...all.map(({ sent, failed, received }) => Math.max(sent + failed, received)));
  const most = Math.max(4, busiest);
  const [wide, high] = [DAYS * 20, 150];
  const y = (n) => n / most * (high - 10);
  const names = { sent: t("Sent"), failed: t("Failed"), received: t("Received") };
  const words = Object.entries(names).map(([kind, name]) => `${number(total(kind))} ${name}`).join(", ");
  return html`
    <div class="stack tight">
      <svg class="chart" viewBox=${`0 0 ${wide} ${high}`} preserveAspectRatio="none" role="img" aria-label=${words}>
          <line class="base" x1="0" x2=${wide} y1=${high - 0.5} y2=${high - 0.5} />
          ${all.map(({ day, sent, failed, received }, i) =>
            html`
              <g key=${day}>
                <title>${`${day}: ${sent} ${names.sent}, ${failed} ${names.failed}, ${received} ${names.received}`}</title>
                <rect class="sent" x=${i * 20 + 3} width="7" y=${high - y(sent)} height=${y(sent)} />
                <rect class="failed" x=${i * 20 + 3} width="7" y=${high - y(sent + failed)} height=${y(failed)} />
                <rect class="received" x=${i * 20 + 11} width="6" y=${high - y(received)} height=${y(received)} />
              </g>
            `
          )}
        </svg>
      <div class="legend">${Object.entries(names).map(([kind, name]) =>
        html`<span class=${kind}><i></i>${name} <strong>${number(total(kind))}</strong></span>`
      )}
          <span class="grow"></span><span>${t("busiest day: {n}", { n: number(busiest) })}</span></div>
    </div>
  `;
}
