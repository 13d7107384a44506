// What needs a person, each with its action; nothing if all is well.
import { bytes, number, t, tn, when } from "./i18n.js";
import { html } from "./html.js";
import { href } from "./router.js";
import { Card } from "./ui.js";
import { errorWord } from "./words.js";

/** Returns what an item says, its action, and where that is; `base` is the account's. */
function shown(item, base) {
  const { kind, id, name, url } = item;
  const line = `${base}/lines/${id}`;
  const webhook = `${base}/webhooks/${id}`;
  switch (kind) {
    case "expired":
      return [t("The subscription has expired. Nothing can be sent until it is renewed."), null, null];
    case "expires":
      return [t("The subscription ends {time}.", { time: when(item.at) }), null, null];
    case "line_unlinked":
      return [t("{line} lost its link and neither sends nor receives.", { line: name }), t("Link again"), line];
    case "line_down":
      return [t("{line} is not connected.", { line: name }), t("See"), line];
    case "line_restricted":
      return [
        item.until
          ? t("WhatsApp restricts {line} until {time}.", { line: name, time: when(item.until) })
          : t("WhatsApp restricts {line}.", { line: name }),
        t("See"),
        line,
      ];
    case "webhook_failing":
      return [t("{url} has failed since {time}.", { url, time: when(item.at) }), t("See"), webhook];
    case "webhook_off":
      return [t("{url} is off and receives no events.", { url }), t("See"), webhook];
    case "proposed":
      return [
        tn("{n} message waits for approval.", "{n} messages wait for approval.", item.count),
        t("See"),
        `${base}/approvals`,
      ];
    case "failed":
      return [
        failedWords(item),
        t("See"),
        `${base}/messages?status=failed&from=${new Date().toISOString().slice(0, 10)}`,
      ];
    case "disk_full":
      return [
        t("The disk is nearly full ({size} free). Sending stops before it is full and resumes when there is room.", {
          size: bytes(item.bytes),
        }),
        null,
        null,
      ];
    case "backup_missing":
      return [
        item.at === null
          ? t("No backup was made yet.")
          : t("The last backup was made {time}.", { time: when(item.at) }),
        t("See"),
        "/gateway/maintenance",
      ];
    case "version_expires":
      return [
        t(
          "WhatsApp refuses this version of WhatsApp Web from {time}. Let the gateway reach web.whatsapp.com, or update it.",
          {
            time: when(item.at),
          },
        ),
        null,
        null,
      ];
  }
}

function failedWords({ count, isMore, reasons }) {
  const why = reasons.map(({ code, count }) => `${number(count)} ${errorWord(code)}`).join(", ");
  return isMore
    ? t("More than {n} messages failed today. The newest: {reasons}.", { n: number(count), reasons: why })
    : tn("{n} message failed today: {reasons}.", "{n} messages failed today: {reasons}.", count).replace(
      "{reasons}",
      why,
    );
}

const URGENT = ["expired", "line_unlinked", "webhook_failing", "disk_full"];

export function Attention({ items, base, more = 0 }) {
  if (items.length === 0) return null;
  return html`
    <${Card} title=${t("Needs attention")} kind="attention">
      <ul class="steps">${items.map((item) => {
        const [text, action, to] = shown(item, base ?? `/accounts/${item.accountId}`);
        return html`
          <li key=${item.kind + (item.id ?? "") + (item.accountId ?? "")}>
            <span class=${`dot ${URGENT.includes(item.kind) ? "bad" : "warn"}`} aria-hidden="true"></span>
            <span class="grow break">${text}${item.accountName &&
              html`
                ${" "}<a class="small" href=${href(`/accounts/${item.accountId}`)}>${item.accountName}</a>
              `}</span>
            ${action && html`<a class="button small" href=${href(to)}>${action}</a>`}</li>
        `;
      })}${more > 0 && html`<li class="soft">${t("{n} more", { n: number(more) })}</li>`}</ul>
      </${Card}>
  `;
}
