/** Errors as messages and statuses carry them. */

const TITLES = {
  131000: "Something went wrong",
  131026: "Message undeliverable",
  131051: "Unsupported message type",
  131052: "Media download error",
  131053: "Media upload error",
} as const;

export type EventErrorCode = keyof typeof TITLES;

export function errorInEvent(code: EventErrorCode, details: string): object {
  const title = TITLES[code];
  return { code, title, message: title, error_data: { details } };
}
