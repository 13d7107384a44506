// The labels and colours of states, the same on every page.
import { html } from "./html.js";
import { number, t, tn, weekday, when } from "./i18n.js";
import { Badge } from "./ui.js";

export const messageWord = (status) =>
  ({
    queued: t("queued"),
    scheduled: t("scheduled"),
    processing: t("on its way"),
    sent: t("sent"),
    failed: t("failed"),
    cancelled: t("cancelled"),
    delivered: t("delivered"),
    read: t("read"),
    edited: t("edited"),
    revoked: t("deleted"),
  })[status] ?? status;
const messageKind = (status) =>
  ({ sent: "good", delivered: "good", read: "good", failed: "bad", processing: "info" })[status] ?? "";
export const MessageState = ({ status }) =>
  html`<${Badge} kind=${messageKind(status)}>${messageWord(status)}</${Badge}>`;

/** Why a message failed, in a word or two. */
export const errorWord = (code) =>
  ({
    cancelled: t("cancelled"),
    cancelled_by_reply: t("cancelled by a reply"),
    expired: t("expired"),
    number_not_registered: t("not on WhatsApp"),
    recipient_opted_out: t("opted out"),
    account_restricted: t("restricted by WhatsApp"),
    refused: t("refused by WhatsApp"),
    unacknowledged: t("not acknowledged"),
  })[code] ?? code.replaceAll("_", " ");

const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/** The days of the week, Monday first: `[name, short word]` each. */
export const weekdays = () => DAYS.map((day, i) => [day, weekday(i)]);

/** Consecutive days become a range. */
function daysWord(days) {
  const at = days.map((day) => DAYS.indexOf(day));
  const isRange = at.length > 2 && at.every((day, i) => i === 0 || day === at[i - 1] + 1);
  return isRange ? `${weekday(at[0])}–${weekday(at.at(-1))}` : at.map(weekday).join(", ");
}

/** What a plan allows, in a line. */
export function planWords({ sessions, daily, monthly, delayMinMs, delayMaxMs, hours, newChatsDaily, warmUp }) {
  const limits = [
    tn("{n} line", "{n} lines", sessions),
    daily === null ? t("no limit a day") : t("{n} a day", { n: number(daily) }),
    monthly === null ? null : t("{n} a month", { n: number(monthly) }),
    delayMaxMs === 0
      ? t("no pauses")
      : t("pauses of {least}–{most} s", { least: number(delayMinMs / 1000), most: number(delayMaxMs / 1000) }),
    newChatsDaily === null ? null : t("{n} new chats a day", { n: number(newChatsDaily) }),
    warmUp ? t("warm-up") : null,
    hours && `${daysWord(hours.days)} ${hours.from}–${hours.to} (${hours.timeZone})`,
  ];
  return limits.filter(Boolean).join(" · ");
}

/** When the last backup was made; null for never. */
export const backupWords = (at) =>
  at === null ? t("No backup was made yet.") : t("The last backup was made {time}.", { time: when(at) });

/** The kinds of messages that can be sent, with their words. */
export const kinds = () => ({
  text: t("Text"),
  image: t("Image"),
  video: t("Video"),
  audio: t("Audio"),
  voice: t("Voice message"),
  document: t("Document"),
  sticker: t("Sticker"),
  location: t("Location"),
  contact: t("Contact"),
  poll: t("Poll"),
  choices: t("Choices"),
  reaction: t("Reaction"),
  status: t("Status update"),
});
const others = () => ({
  order: t("Order"),
  product: t("Product"),
  event: t("Event"),
  invite: t("Invitation to a group"),
});
export const kindWord = (kind) => ({ ...kinds(), ...others() })[kind] ?? kind;

/** The kinds of received messages, by their type in events. */
const RECEIVED = {
  conversation: "text",
  extendedTextMessage: "text",
  buttonsResponseMessage: "text",
  listResponseMessage: "text",
  imageMessage: "image",
  videoMessage: "video",
  audioMessage: "audio",
  documentMessage: "document",
  stickerMessage: "sticker",
  locationMessage: "location",
  liveLocationMessage: "location",
  contactMessage: "contact",
  contactsArrayMessage: "contact",
  pollCreationMessage: "poll",
  unknown: "text",
};
/** What WhatsApp has besides, by `details.kind`. */
const OTHERS = {
  orderMessage: "order",
  productMessage: "product",
  eventMessage: "event",
  groupInviteMessage: "invite",
};

/** Returns the kind of a chat's message, whether it was sent or received. */
export const kindOf = ({ type, details }) =>
  type === "audioMessage" && details?.voice ? "voice" : OTHERS[details?.kind] ?? RECEIVED[type] ?? type;

export const priorityWord = (priority) =>
  ({ high: t("high"), normal: t("normal"), low: t("low") })[priority] ?? priority ?? "–";

/** What a message waits for, if not only its turn. */
export function waitWord(waitsFor) {
  if (!waitsFor) return t("its turn");
  const words = {
    approval: t("an approval"),
    schedule: t("its scheduled time"),
    paused: t("the queue to be resumed"),
    line: t("the line to be connected"),
  };
  const word = words[waitsFor.kind] ?? waitsFor.kind.replaceAll("_", " ");
  return waitsFor.until && waitsFor.kind !== "schedule" ? `${word} (${when(waitsFor.until)})` : word;
}

/** The last state of a message: delivered and read come after `sent`; a cancelled one has not failed. */
export function farthest({ status, error, sendAt, deliveredAt, readAt }) {
  if (status === "queued") return sendAt && new Date(sendAt) > new Date() ? "scheduled" : status;
  return readAt ? "read" : deliveredAt ? "delivered" : error?.code === "cancelled" ? "cancelled" : status;
}

export const deliveryWord = (status) =>
  ({
    pending: t("waiting"),
    delivered: t("delivered"),
    failed: t("failed"),
  })[status] ?? status;
const deliveryKind = (status) => ({ delivered: "good", failed: "bad" })[status] ?? "warn";
export const DeliveryState = ({ status }) =>
  html`<${Badge} kind=${deliveryKind(status)}>${deliveryWord(status)}</${Badge}>`;

/** An active webhook may be failing. */
export function WebhookState({ webhook: { active, failingSince } }) {
  const [kind, word] = !active ? ["warn", t("off")] : failingSince ? ["bad", t("failing")] : ["good", t("active")];
  return html`<${Badge} kind=${kind}>${word}</${Badge}>`;
}

/** Formats a number; a JID stays as it is, except that of status posts. */
export const phone = (to) =>
  /^\d+$/.test(to)
    ? `+${to}`
    : to === "status@broadcast"
    ? t("Status update")
    : to.replace(/^(\d+)@s\.whatsapp\.net$/, "+$1");

export const isGroup = (chat) => chat.endsWith("@g.us");

/** Returns the name of a chat, of those known so far (`useNames`). An erased person has none. */
export const chatName = (to, names) => to === "" ? t("erased") : names.get(to) ?? phone(to);

export const lineWord = ({ status, passkey }) =>
  passkey ? t("waiting for passkey") : ({
    initializing: t("starting"),
    qr: t("waiting for QR scan"),
    pairing: t("waiting for code"),
    connected: t("connected"),
    disconnected: t("disconnected"),
    logged_out: t("logged out"),
  })[status] ?? status;
const stateKind = ({ status, passkey }) =>
  passkey ? "info" : ({
    connected: "good",
    qr: "info",
    pairing: "info",
    disconnected: "warn",
    logged_out: "bad",
  })[status] ?? "";

/** Whether the line is connected but receives nothing; its reason says what the gateway noticed. */
export const isDegraded = ({ status, reason }) => status === "connected" && Boolean(reason);

const TROUBLE = ["logged_out", "disconnected", "initializing", "qr", "pairing", "connected"];
const rank = (line) => line.restriction || isDegraded(line) ? 1 : TROUBLE.indexOf(line.status);
/** Sorts lines, those in trouble first. */
export const byTrouble = (lines) => lines.toSorted((a, b) => rank(a) - rank(b));

export function LineState({ line }) {
  return html`<span class="row"><${Badge} kind=${stateKind(line)}>${lineWord(line)}</${Badge}>${
    line.restriction && html`<${Badge} kind="warn">${t("restricted")}</${Badge}>`
  }${isDegraded(line) ? html`<${Badge} kind="warn">${t("receives nothing")}</${Badge}>` : ""}</span>`;
}
