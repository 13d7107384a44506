/** Errors in the shape and with the codes of the official API. */
import type { ProblemCode } from "../errors.ts";

/** A refusal of this room; what the API refuses is translated by `ofProblem`. */
export class CloudError extends Error {
  constructor(readonly code: number, detail: string, readonly status: 400 | 404 = 400) {
    super(detail);
    this.name = "CloudError";
  }
}

export function wrongParameter(detail: string): CloudError {
  return new CloudError(100, detail);
}

const TITLES: Readonly<Record<number, string>> = {
  10: "Application does not have permission for this action",
  100: "Invalid parameter",
  190: "Invalid OAuth access token",
  130429: "Rate limit hit",
  131051: "Unsupported message type",
  131053: "Media upload error",
  132001: "Template name does not exist in the translation",
};

const CODES: Readonly<Record<number, number>> = {
  400: 100,
  401: 190,
  403: 10,
  404: 100,
  405: 100,
  413: 131053,
  415: 131053,
  429: 130429,
};

/** Returns the error for a problem of the API. `isTemplate`: the request names a template. */
export function ofProblem(
  { code, status, detail }: { code: ProblemCode; status: number; detail: string },
  isTemplate = false,
): { code: number; status: number; detail: string } {
  if (isTemplate && code === "not_found") return { code: 132001, status: 404, detail };
  return { code: CODES[status] ?? 131000, status, detail };
}

/** Returns the body of the answer; `requestId` finds the request in the log. */
export function errorBody({ code, detail }: { code: number; detail: string }, requestId: string): object {
  return {
    error: {
      message: `(#${code}) ${TITLES[code] ?? "Something went wrong"}`,
      type: "OAuthException",
      code,
      error_data: { messaging_product: "whatsapp", details: detail },
      fbtrace_id: requestId,
    },
  };
}
