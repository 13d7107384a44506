/** Describes events, each in one line, for a person at a terminal. */
import { isGroup } from "../whatsapp/chats.ts";
import type { Json } from "./client.ts";

const LONGEST_TEXT = 200;

/** Returns the event without its time. Text from senders can neither break the line nor control the terminal. */
export function describeEvent({ event, sessionName, data }: Json): string {
  return [event.padEnd(20), oneLine(sessionName), "·", oneLine(summary(event, data))].join(" ");
}

function summary(event: string, data: Json): string {
  const who = data?.number ?? "somebody";
  const said = data?.text === null ? "" : `: ${data.text}`;
  switch (event) {
    case "message.received":
    case "message.echo": {
      const whose = event === "message.echo" ? `to ${data.from}` : `from ${data.number ?? data.from}`;
      const where = isGroup(data.from) && event === "message.received" ? ` in ${data.from}` : "";
      const file = data.media ? ` [${data.media.filename}, ${data.media.size} bytes]` : "";
      return `${whose}${where}, ${data.details?.kind ?? data.type}${said}${file}`;
    }
    case "message.sent":
      return `${data.messageId} to ${data.to}`;
    case "message.status":
      return `${data.messageId} ${data.status}${data.participant ? ` by ${data.participant}` : ""}`;
    case "message.failed":
      return `${data.messageId} to ${data.to}: ${data.error.code}, ${data.error.message}`;
    case "message.proposed":
      return `${data.messageId} to ${data.to} by ${data.by}${said}`;
    case "message.edited":
      return `${data.messageId} in ${data.chat} by ${who}${said}`;
    case "message.deleted":
      return `${data.messageId} in ${data.chat} by ${who}`;
    case "poll.vote":
      return `${who} in ${data.chat}, ${data.messageId ?? data.networkId}: ${
        data.options.join(", ") || "nothing any more"
      }`;
    case "choice.made":
      return `${who} in ${data.chat}, ${data.messageId}: ${data.label}`;
    case "verification.passed":
      return `${data.number ?? data.chat} has ${data.id}`;
    case "verification.failed":
      return `${data.id}: ${data.reason}`;
    case "call.received":
      return `${data.video ? "video call" : "call"} from ${data.number ?? data.chat}`;
    case "presence.updated":
      return `${who} in ${data.chat}: ${data.state}`;
    case "group.updated":
      return `${data.group.id}${data.group.name ? `, ${data.group.name}` : ""}`;
    case "group.participants":
      return `${data.action} in ${data.group.id}: ${
        data.participants.map(({ id, number }: Json) => number ?? id).join(", ")
      }`;
    case "recipient.opted_out":
      return `${data.number} wrote ${data.word}`;
    case "session.connected":
      return `as ${data.phone}`;
    case "session.disconnected":
      return `${data.status}: ${data.reason}`;
    case "session.qr":
      return "a new QR to scan";
    case "session.passkey":
      return data.stage === "required" ? "the account asks for its passkey" : "a code to compare with the phone";
    case "session.restricted":
      return data.active ? `no new chats until ${data.until ?? "further notice"}` : "new chats are allowed again";
    case "webhook.disabled":
      return `${data.webhookId}: ${data.reason}`;
    case "session.degraded":
      return data.reason ?? "well again";
    case "webhook.failing":
      return `${data.url}: ${data.lastError}${data.active ? "" : ", switched off"}`;
    default:
      return JSON.stringify(data);
  }
}

function oneLine(text: string): string {
  const shown = text.replace(/[\s\p{Cc}\p{Cf}]+/gu, " ");
  return shown.length > LONGEST_TEXT ? shown.slice(0, LONGEST_TEXT).toWellFormed() + "…" : shown;
}
