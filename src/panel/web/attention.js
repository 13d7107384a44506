// What needs a person, each with its action; nothing if all is well.
import { bytes, number, t, tn, when } from "./i18n.js";
import { html } from "./html.js";
import { href } from "./router.js";
import { Card } from "./ui.js";
import { backupWords, errorWord } from "./words.js";

/** Returns what an item says, the path where it is dealt with, if any, and the words for that; `base` is the account's. */
function shown(item, base) {
  const { kind, id, name: line, url, at, until } = item;
  const lineAt = `${base}/lines/${id}`;
  const webhookAt = `${base}/webhooks/${id}`;
  switch (kind) {
    case "expired":
      return [t("The subscription has expired. Nothing can be sent until it is renewed.")];
    case "expires":
      return [t("The subscription ends {time}.", { time: when(at) })];
    case "line_unlinked":
      return [t("{line} lost its link and neither sends nor receives.", { line }), lineAt, t("Link again")];
    case "line_down":
      return [t("{line} is not connected.", { line }), lineAt];
    case "line_restricted":
      return [
        until
          ? t("WhatsApp restricts {line} until {time}.", { line, time: when(until) })
          : t("WhatsApp restricts {line}.", { line }),
        lineAt,
      ];
    case "webhook_failing":
      return [t("{url} has failed since {time}.", { url, time: when(at) }), webhookAt];
    case "webhook_off":
      return [t("{url} is off and receives no events.", { url }), webhookAt];
    case "proposed":
      return [
        tn("{n} message waits for approval.", "{n} messages wait for approval.", item.count),
        `${base}/approvals`,
      ];
    case "failed":
      return [failedWords(item), `${base}/messages?status=failed&from=${new Date().toISOString().slice(0, 10)}`];
    case "disk_full":
      return [
        t("The disk is nearly full ({size} free). Sending stops before it is full and resumes when there is room.", {
          size: bytes(item.bytes),
        }),
      ];
    case "backup_missing":
      return [backupWords(at), "/gateway/maintenance"];
    case "version_expires":
      return [
        t(
          "WhatsApp refuses this version of WhatsApp Web from {time}. Let the gateway reach web.whatsapp.com, or update it.",
          { time: when(at) },
        ),
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
        const [text, to, action = t("See")] = shown(item, base ?? `/accounts/${item.accountId}`);
        return html`
          <li key=${item.kind + (item.id ?? "") + (item.accountId ?? "")}>
            <span class=${`dot ${URGENT.includes(item.kind) ? "bad" : "warn"}`} aria-hidden="true"></span>
            <span class="grow break">${text}${item.accountName &&
              html`
                ${" "}<a class="small" href=${href(`/accounts/${item.accountId}`)}>${item.accountName}</a>
              `}</span>
            ${to && html`<a class="button small" href=${href(to)}>${action}</a>`}</li>
        `;
      })}${more > 0 && html`<li class="soft">${t("{n} more", { n: number(more) })}</li>`}</ul>
      </${Card}>
  `;
}
