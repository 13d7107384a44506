/** What became of a message, as a status of the official API. */
import type { EventData, LoggedEvent } from "../event/event.ts";
import { chatOf, type Message } from "../message/message.ts";
import { errorInEvent, type EventErrorCode } from "./errors.ts";

export interface Status {
  id: string;
  status: "sent" | "delivered" | "read" | "failed";
  /** Unix seconds. */
  timestamp: string;
  /** Digits or a JID. */
  chat: string;
  /** The member of a group who received or read it; else null. */
  participant: string | null;
  biz_opaque_callback_data?: string;
  errors?: object[];
}

type StatusEvent = Extract<LoggedEvent, { event: "message.sent" | "message.status" | "message.failed" }>;

/** The codes for why a message failed; 131000 for all others. */
const CODES: Readonly<Record<string, EventErrorCode>> = {
  number_not_registered: 131026,
  file_unavailable: 131053,
  file_unsuitable: 131053,
};

/** Returns the status that the event tells; `message` is the record, null if it is gone. */
export function statusOf({ event, data, createdAt }: StatusEvent, message: Message | null): Status {
  const seconds = (time: number) => String(Math.floor(time / 1000));
  const callbackData = message?.manner?.cloud?.callbackData;
  const said = {
    id: data.messageId,
    chat: chatOf("to" in data ? data.to : message?.to ?? ""),
    participant: null,
    ...(callbackData === undefined ? {} : { biz_opaque_callback_data: callbackData }),
  };
  switch (event) {
    case "message.sent":
      return { ...said, status: "sent", timestamp: seconds(Date.parse(data.sentAt)) };
    case "message.status": {
      const participant = data.participant === null ? null : chatOf(data.participant);
      return { ...said, status: data.status, timestamp: seconds(Date.parse(data.at)), participant };
    }
    case "message.failed":
      return { ...said, status: "failed", timestamp: seconds(createdAt), errors: [errorOf(data.error)] };
  }
}

function errorOf({ code, message }: EventData<"message.failed">["error"]): object {
  return errorInEvent(CODES[code] ?? 131000, `${message} (${code})`);
}
