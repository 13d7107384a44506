/** Answers to requests: JSON, event streams, and problem documents for errors. */
import { Buffer } from "node:buffer";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { CATALOGUE, Problem, type ProblemCode } from "../../errors.ts";
import { StoreError } from "../../store/kv.ts";
import { NetworkRefusal, NetworkTimeout, PasskeyNotRequested, PasskeyRefused } from "../../whatsapp/connection.ts";
import type { Taken } from "../edge/budgets.ts";
import type { ApiContext } from "./route.ts";

/** `Retry-After` while the storage is unavailable. */
const STORAGE_RETRY_SECONDS = 5;

interface JsonAnswer {
  status: number;
  body: unknown;
  /** In addition to those collected in the context (`c.var.headers`). */
  headers: Readonly<Record<string, string>>;
}

/**
 * Answers with JSON. On a connection the answer is written to it directly: as a Response it would be read back as a
 * stream, which costs a third of a small request. A request made inside the process gets a Response.
 */
export function answerJson(c: ApiContext, { status, body, headers }: JsonAnswer): Response {
  const text = JSON.stringify(body);
  const outgoing = c.env?.outgoing;
  const head: Record<string, string | number> = c.get("headers");
  for (const name in headers) head[name] = headers[name]!;
  if (!outgoing) return new Response(text, { status, headers: c.get("headers") });
  const length = Buffer.byteLength(text);
  head["content-length"] = length;
  outgoing.writeHead(status, head);
  // As latin1, if every character is one byte, head and body are written in one piece.
  outgoing.end(text, length === text.length ? "latin1" : "utf8");
  c.set("written", status);
  return SENT;
}

const SIGN = [...RESPONSE_ALREADY_SENT.headers];

/** Headers with nothing but the listener's mark, at a tenth of the cost of real ones. */
class SentHeaders extends Headers {
  constructor() {
    super(SIGN); // for the copy that answers HEAD, which has real headers
  }
  override has(): boolean {
    return false;
  }
  override [Symbol.iterator]() {
    return SIGN.values();
  }
}

/** Tells the listener that the answer has already been written. */
const SENT = Object.defineProperty(new Response(null), "headers", { value: new SentHeaders() });

const STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

/**
 * Answers with the stream that `open` makes, which must release `place` at its end. Throws what `place.add` throws,
 * before anything is opened, and what `open` throws. HEAD takes no place, because its answer is never read or closed.
 */
export async function streamAnswer(
  c: ApiContext,
  place: Taken,
  open: () => ReadableStream<Uint8Array> | Promise<ReadableStream<Uint8Array>>,
): Promise<Response> {
  if (c.req.method === "HEAD") return c.body(null, 200, STREAM_HEADERS);
  place.add(1);
  try {
    return c.body(await open(), 200, STREAM_HEADERS);
  } catch (error) {
    place[Symbol.dispose]();
    throw error;
  }
}

/** Codes of the network that mean a fault in the request; 410: an invite that was revoked. */
const REFUSALS: Readonly<Record<number, ProblemCode>> = {
  401: "network_forbidden",
  403: "network_forbidden",
  404: "not_found",
  409: "network_conflict",
  410: "not_found",
};

/** Returns the Problem for an error. Unexpected errors become `internal_error`, without details for the client. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof StoreError) {
    return new Problem("storage_unavailable", "The request was not carried out; try again later.", {
      retryAfterSeconds: STORAGE_RETRY_SECONDS,
      cause: error,
    });
  }
  if (error instanceof NetworkRefusal) {
    return new Problem(REFUSALS[error.code ?? 0] ?? "network_error", error.message, { cause: error });
  }
  if (error instanceof NetworkTimeout) return new Problem("network_timeout", error.message, { cause: error });
  if (error instanceof PasskeyNotRequested) {
    return new Problem("passkey_not_requested", "This step of the passkey is not requested at the moment.");
  }
  if (error instanceof PasskeyRefused) return new Problem("passkey_refused", error.message);
  return new Problem("internal_error", "The request failed; the gateway's log has the cause, under its requestId.", {
    cause: error,
  });
}

/** Answers with a problem document. */
export function renderProblem(c: ApiContext, problem: Problem): Response {
  const { status, extras } = problem;
  const headers: Record<string, string> = { ...extras.headers, "content-type": "application/problem+json" };
  if (extras.retryAfterSeconds !== undefined) headers["retry-after"] = String(extras.retryAfterSeconds);
  if (status === 401) headers["www-authenticate"] = 'ApiKey realm="paloma", header="x-api-key"';
  if (status >= 500) c.set("failure", problem.cause ?? problem);
  return answerJson(c, { status, body: problemDocument(problem, c.get("requestId")), headers });
}

/** Returns the document as RFC 9457 defines it, with this API's additional members. */
export function problemDocument({ code, status, message: detail, extras }: Problem, requestId: string): object {
  return {
    type: `/docs#error-${code}`,
    title: CATALOGUE[code].title,
    status,
    detail,
    code,
    requestId,
    ...(extras.errors ? { errors: extras.errors } : {}),
    ...extras.members,
  };
}
