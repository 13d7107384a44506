/** The formats of webhooks: which events they tell of, how their bodies look, and how they are signed. */
import { EVENT_NAMES, type EventName, type LoggedEvent } from "../event/event.ts";
import { signatureHeaders, type SignedBody } from "./signature.ts";

export const FORMAT_NAMES = ["paloma", "cloud"] as const;
export type FormatName = (typeof FORMAT_NAMES)[number];

export interface Format {
  /** Resolves to the body of the request. Throws StoreError. */
  bodyOf(event: LoggedEvent): Promise<string>;
  signatureHeaders(signed: SignedBody): Record<string, string>;
}

/** Each is loaded when it is first needed. */
export type Formats = Readonly<Record<FormatName, () => Promise<Format>>>;

/** The format of the specification. Parsing and stringifying a body gives the same bytes, see `event/plain_json.ts`. */
export const palomaFormat: Format = {
  bodyOf: ({ event, sessionId, sessionName, data }) =>
    Promise.resolve(JSON.stringify({ event, sessionId, sessionName, data })),
  signatureHeaders,
};

/** The events that the official API has a body for. */
const CLOUD_EVENTS: readonly EventName[] = [
  "message.sent",
  "message.status",
  "message.failed",
  "message.received",
  "message.echo",
  "choice.made",
];

/** The events that a webhook of the format can subscribe to. */
export const EVENTS_OF: Readonly<Record<FormatName, readonly EventName[]>> = {
  paloma: EVENT_NAMES,
  cloud: CLOUD_EVENTS,
};

/** Whether the format has a body for the event. */
export function tells(format: FormatName, { event, data }: LoggedEvent): boolean {
  if (format === "paloma") return true;
  // A choice that was written or tapped is told by the message.
  if (event === "choice.made") return data.how === "vote";
  return EVENTS_OF[format].includes(event) && !isOfStatus(data);
}

/** The official API knows no status posts. */
function isOfStatus(data: LoggedEvent["data"]): boolean {
  const chat = "chat" in data ? data.chat : "to" in data ? data.to : "";
  return chat.endsWith("@broadcast") || chat.endsWith("@newsletter");
}
