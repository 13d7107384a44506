/** Errors in the shape and with the codes of the official API. */
import type { Problem, ProblemCode } from "../errors.ts";

/** A refusal in the official API's words. */
export class CloudError extends Error {
  constructor(readonly code: number, detail: string, readonly status = 400, readonly retryAfterSeconds?: number) {
    super(detail);
    this.name = "CloudError";
  }
}

export function wrongParameter(detail: string): CloudError {
  return new CloudError(100, detail);
}

export const unknownPhone = () => new CloudError(100, "There is no phone number with this id.", 404);
export const noAccount = () => new CloudError(100, "There is no business account with this id.", 404);
export const noSuchPath = () => new CloudError(100, "This path and method are not supported.", 404);

/** The codes that messages and statuses carry. */
export type EventErrorCode = 131000 | 131026 | 131051 | 131052 | 131053;

const TITLES: Readonly<Record<number, string>> = {
  10: "Application does not have permission for this action",
  100: "Invalid parameter",
  190: "Invalid OAuth access token",
  130429: "Rate limit hit",
  131026: "Message undeliverable",
  131047: "Re-engagement message",
  131051: "Unsupported message type",
  131052: "Media download error",
  131053: "Media upload error",
  132001: "Template name does not exist in the translation",
};

const OTHER = "Something went wrong";

/** Code and status by the problem's status, where they are not 131000 and the same status. */
const BY_STATUS: Readonly<Record<number, { code: number; status: number }>> = {
  400: { code: 100, status: 400 },
  401: { code: 190, status: 401 },
  403: { code: 10, status: 403 },
  404: { code: 100, status: 404 },
  405: { code: 100, status: 400 },
  413: { code: 100, status: 400 },
  415: { code: 100, status: 400 },
  416: { code: 100, status: 416 },
  422: { code: 100, status: 400 },
  429: { code: 130429, status: 429 },
};

/** Problems whose code does not follow from their status. */
const BY_CODE: Partial<Record<ProblemCode, { code: number; status: number }>> = {
  // The caller has the permission; the message cannot be sent.
  recipient_opted_out: { code: 131000, status: 400 },
};

/** Returns the error for a problem of a service. */
export function ofProblem(problem: Pick<Problem, "code" | "status" | "message" | "extras">): CloudError {
  const { code, status, message, extras: { retryAfterSeconds } } = problem;
  const known = BY_CODE[code] ?? BY_STATUS[status];
  return new CloudError(known?.code ?? 131000, message, known?.status ?? status, retryAfterSeconds);
}

/** Returns the body of the answer; `requestId` finds the request in the log. */
export function errorBody({ code, message: details }: CloudError, requestId: string): { error: object } {
  return {
    error: {
      message: `(#${code}) ${TITLES[code] ?? OTHER}`,
      type: "OAuthException",
      code,
      error_data: { messaging_product: "whatsapp", details },
      fbtrace_id: requestId,
    },
  };
}

/** Returns an error as messages and statuses carry it. */
export function errorInEvent(code: EventErrorCode, details: string): object {
  const title = TITLES[code] ?? OTHER;
  return { code, title, message: title, error_data: { details } };
}
