/** Requests with retries that are safe. */
import { PalomaConnectionError, PalomaError } from "./errors.ts";

export interface TransportOptions {
  /** How often a request is tried in all. Defaults to 6, which is about 12 seconds. */
  attempts?: number;
  /** Milliseconds for one try. Defaults to 30,000, for a file to ten minutes. */
  timeoutMs?: number;
  /** In place of the runtime's own. */
  fetch?: typeof fetch;
}

export interface RequestOptions {
  /** For a POST. Defaults to a new one for each call; derive it from what you send to be safe across restarts of your own. */
  idempotencyKey?: string;
  signal?: AbortSignal;
  attempts?: number;
  timeoutMs?: number;
}

export interface Call extends RequestOptions {
  method: string;
  /** With its query, after `/v1`. */
  path: string;
  headers?: Record<string, string>;
  /** Makes the body of each try. */
  body?: () => RequestBody;
}

export interface RequestBody {
  content: BodyInit;
  contentType?: string;
  /** Why the body could not be read, if it could not. */
  failure?: () => unknown;
}

/** Sent again after a lost connection: the gateway does these once, a POST by its `Idempotency-Key`. */
const REPEATABLE = new Set(["GET", "POST", "PUT"]);
/** A quota of the day names hours: that is for the caller to decide. */
const LONGEST_WAIT_MS = 60_000;
const FIRST_PAUSE_MS = 400;
const LONGEST_PAUSE_MS = 10_000;

export class Transport {
  readonly #baseUrl: string;
  readonly #apiKey: string;
  readonly #options: Required<TransportOptions>;

  constructor(baseUrl: string, apiKey: string, options: TransportOptions) {
    this.#baseUrl = baseUrl.replace(/\/+$/, "");
    this.#apiKey = apiKey;
    this.#options = {
      attempts: 6,
      timeoutMs: 30_000,
      fetch: (...args) => fetch(...args),
      ...options,
    };
  }

  /** Resolves to the JSON of the answer. Throws PalomaError, PalomaConnectionError, and the signal's reason. */
  async json(call: Call): Promise<unknown> {
    const {
      method,
      attempts = this.#options.attempts,
      timeoutMs = this.#options.timeoutMs,
    } = call;
    const headers = { ...call.headers };
    if (method === "POST") headers["idempotency-key"] = call.idempotencyKey ?? crypto.randomUUID();
    for (let attempt = 1;; attempt++) {
      const limit = AbortSignal.timeout(timeoutMs);
      try {
        const response = await this.open({
          ...call,
          headers,
          signal: call.signal ? AbortSignal.any([call.signal, limit]) : limit,
        });
        const text = await reading(response.text());
        return text === "" ? undefined : JSON.parse(text);
      } catch (error) {
        call.signal?.throwIfAborted();
        const waitMs = waitAfter(error, method, attempt);
        if (waitMs === null || attempt >= attempts) throw error;
        await pause(waitMs, call.signal);
      }
    }
  }

  /** One try. Resolves to a response whose status is 2xx. */
  async open({ method, path, headers, body, signal }: Call): Promise<Response> {
    const { content = null, contentType, failure } = body?.() ?? {};
    const response = await this.#options.fetch(this.#baseUrl + path, {
      method,
      headers: {
        "x-api-key": this.#apiKey,
        ...contentType && { "content-type": contentType },
        ...headers,
      },
      body: content,
      signal: signal ?? null,
      // What a body that is a stream requires.
      ...content instanceof ReadableStream && { duplex: "half" },
    }).catch((error) => {
      throw failure?.() ?? connectionError(error);
    });
    if (response.ok) return response;
    throw new PalomaError(
      response.status,
      problemIn(await reading(response.text())),
      retryAfterMs(response),
    );
  }
}

function reading<T>(body: Promise<T>): Promise<T> {
  return body.catch((error) => {
    throw connectionError(error);
  });
}

export function connectionError(cause: unknown): PalomaConnectionError {
  return new PalomaConnectionError("the gateway did not answer", { cause });
}

/** Milliseconds until the next try; null if another one is not safe or would not help. */
export function waitAfter(
  error: unknown,
  method: string,
  attempt: number,
): number | null {
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS) *
    (0.5 + Math.random() / 2);
  if (error instanceof PalomaConnectionError) {
    return REPEATABLE.has(method) ? pauseMs : null;
  }
  if (!(error instanceof PalomaError) || !isTemporary(error, method)) {
    return null;
  }
  const waitMs = error.retryAfterMs ?? pauseMs;
  return waitMs <= LONGEST_WAIT_MS ? waitMs : null;
}

function isTemporary({ status, code }: PalomaError, method: string): boolean {
  if (status === 429) return true;
  if (!REPEATABLE.has(method)) return false;
  // With a code, 502 and 504 say that WhatsApp was asked: asking twice might do twice.
  return status === 503 ||
    (status === 502 || status === 504) &&
      (code === "unknown" || method === "GET");
}

function problemIn(text: string): PalomaError["problem"] {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === "object" && body !== null ? body : {};
  } catch {
    return {};
  }
}

function retryAfterMs({ headers }: Response): number | null {
  const value = headers.get("retry-after");
  if (value === null) return null;
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? null : Math.max(ms, 0);
}

/** Throws the signal's reason when it is aborted. */
export async function pause(
  ms: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });
  signal?.throwIfAborted();
}
