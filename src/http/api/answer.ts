/** How a request is answered: with JSON, with a stream of events, and with the problem that an error is. */
import { Buffer } from "node:buffer";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { CATALOGUE, Problem, type ProblemCode } from "../../errors.ts";
import { StoreError } from "../../store/kv.ts";
import { NetworkRefusal, NetworkTimeout } from "../../whatsapp/network_error.ts";
import { PasskeyNotRequested, PasskeyRefused } from "../../whatsapp/passkey.ts";
import type { Taken } from "../edge/budgets.ts";
import type { ApiContext } from "./context.ts";

/** Seconds after which it makes sense to try again when the storage is in trouble. */
const STORAGE_RETRY_SECONDS = 5;

interface JsonAnswer {
  status: number;
  body: unknown;
  /** Beside those that the request has earned on its way (`c.var.headers`). */
  headers: Readonly<Record<string, string>>;
}

/**
 * The answer; for a request within the process a Response of its own. On a connection it is written straight to it: as a
 * Response it would be read back as a stream, which costs a third of what a small request costs in all.
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
  // Where a character is a byte, head and body are written in one piece.
  outgoing.end(text, length === text.length ? "latin1" : "utf8");
  c.set("written", status);
  return SENT;
}

const SIGN = [...RESPONSE_ALREADY_SENT.headers];

/** Headers that hold the listener's sign alone: it finds it there at a tenth of what real ones cost. */
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

/** Says to the listener that the answer is written. */
const SENT = Object.defineProperty(new Response(null), "headers", { value: new SentHeaders() });

const STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

/**
 * The answer that streams what `open` makes; the stream leaves the place at its end. One too many is refused before
 * anything is opened for it, and throws what `open` throws. HEAD takes no place: nobody reads its answer, or closes it.
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

/** The network's codes that say what is wrong with the request; 410 is an invitation that was revoked. */
const REFUSALS: Readonly<Record<number, ProblemCode>> = {
  401: "network_forbidden",
  403: "network_forbidden",
  404: "not_found",
  409: "network_conflict",
  410: "not_found",
};

/** The problem that an error is; whatever nobody foresaw is `internal_error` and tells the client nothing. */
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
    return new Problem("passkey_not_requested", "No passkey, or not this step of it, is asked for now.");
  }
  if (error instanceof PasskeyRefused) return new Problem("passkey_refused", error.message);
  return new Problem("internal_error", "The request failed; its requestId finds the reason in the gateway's log.", {
    cause: error,
  });
}

/** The answer for a problem. */
export function renderProblem(c: ApiContext, problem: Problem): Response {
  const { status, extras } = problem;
  const headers: Record<string, string> = { ...extras.headers, "content-type": "application/problem+json" };
  if (extras.retryAfterSeconds !== undefined) headers["retry-after"] = String(extras.retryAfterSeconds);
  if (status === 401) headers["www-authenticate"] = 'ApiKey realm="paloma", header="x-api-key"';
  if (status >= 500) c.set("failure", problem.cause ?? problem);
  return answerJson(c, { status, body: problemDocument(problem, c.get("requestId")), headers });
}

/** RFC 9457, with this API's own members. */
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
