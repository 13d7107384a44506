/**
 * The only way to make requests to user-given addresses (webhook targets, `fileUrl`). Connections go to exactly the
 * vetted address (`vetting.ts`). Redirects are followed only on request, and every hop is vetted. Nothing is ever sent
 * twice.
 */
import { urlHost } from "../base/addresses.ts";
import type { Clock } from "../runtime.ts";
import { connect, IdleConnections, ReusableConnection } from "./connections.ts";
import { Deadline } from "./deadline.ts";
import { EgressError } from "./egress_error.ts";
import { exchange, type PlainResponse, type StreamedBody } from "./http1.ts";
import type { Proxy } from "./proxy.ts";
import type { ProxyAddress } from "./proxy_address.ts";
import { makeResolve, type Resolve } from "./resolve.ts";
import { type AllowList, makeVetting, readUrl, type Scheme } from "./vetting.ts";

export interface SafeRequest {
  url: string;
  method: "GET" | "POST";
  headers?: Readonly<Record<string, string>>;
  /** A streamed body can be sent only once, so it cannot be combined with redirects. */
  body?: Uint8Array | StreamedBody;
  /** Accepted schemes; hosts allowed by the operator may always be called over plain http. */
  schemes: readonly Scheme[];
  /** How many redirects to follow; with 0 the 3xx response itself is returned. */
  maxRedirects: number;
  /** Time limit of the whole exchange, body included. */
  timeoutMs: number;
  /** The body's stream errors with `too_large` past it. */
  maxBytes: number;
  /** Whether to use an idle connection to the same origin, and to keep this one for the next request. */
  reuse?: boolean;
  signal?: AbortSignal;
}

export interface SafeResponse extends Pick<PlainResponse, "status" | "headers"> {
  /** The final URL, after redirects. */
  url: URL;
  /** The body as sent; errors if it is truncated, too large or late. */
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** Reads and discards the body, to free the connection. Throws EgressError. */
  discard(): Promise<void>;
}

export interface SafeFetch {
  /** Makes a request. The body must be read, cancelled or discarded, which frees the connection. Throws EgressError. */
  fetch(request: SafeRequest): Promise<SafeResponse>;
  /** Throws EgressError if the target may not be called. A name that does not resolve at the moment is accepted. */
  vet(url: string, schemes: readonly Scheme[]): Promise<void>;
  /** As `vet`, for a proxy. */
  vetProxy(address: ProxyAddress): Promise<void>;
  /** Returns the proxy at an address vetted by this call. Throws EgressError. */
  proxy(address: ProxyAddress): Promise<Proxy>;
}

interface SafeFetchOptions {
  clock: Clock;
  allow: AllowList;
  /** The system's resolver by default. */
  resolve?: Resolve;
  /** This machine's addresses; by default, asks the system. */
  ownAddresses?: () => string[];
  /** PEM certificates trusted in addition to the system's. */
  caCerts?: string[];
  /** If given, all requests go through this proxy, which resolves names; what it can reach is not checked here. */
  via?: Pick<Proxy, "connect">;
}

/** Long enough for a slow name server, short enough for a client waiting for its 201. */
const VET_TIMEOUT_MS = 3_000;
const PROXY_SCHEMES: readonly Scheme[] = ["http:", "https:"];
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

export function makeSafeFetch(
  { clock, allow, resolve = makeResolve(clock), ownAddresses, caCerts = [], via }: SafeFetchOptions,
): SafeFetch {
  const idle = new IdleConnections(clock);
  const vetting = makeVetting({ allow, resolve, ownAddresses });

  async function vet(url: URL, schemes: readonly Scheme[]): Promise<void> {
    const deadline = new Deadline(clock, { timeoutMs: VET_TIMEOUT_MS });
    try {
      await deadline.race(vetting.addressesOf(url, schemes));
      deadline.end();
    } catch (error) {
      const failure = deadline.fail(error);
      if (failure.code !== "unresolved" && failure.code !== "timeout") throw failure;
      vetting.checkUnresolved(url, schemes);
    }
  }

  async function connectTo(url: URL, request: SafeRequest, deadline: Deadline): Promise<ReusableConnection> {
    const addresses = await deadline.race(vetting.addressesOf(url, request.schemes));
    const waiting = request.reuse ? idle.take(url.origin, addresses) : null;
    return waiting ?? await connect(url, { addresses, caCerts, deadline, clock });
  }

  async function once(url: URL, request: SafeRequest, deadline: Deadline): Promise<Hop> {
    const connection = via
      ? new ReusableConnection(await deadline.race(via.connect(url, caCerts), (late) => late.close()), url.hostname)
      : await connectTo(url, request, deadline);
    deadline.onStop(() => connection.close());
    const response = await deadline.race(exchange(connection, {
      method: request.method,
      target: url.pathname + url.search,
      headers: {
        host: url.host,
        "user-agent": "Paloma",
        "accept-encoding": "identity",
        connection: request.reuse ? "keep-alive" : "close",
        ...request.headers,
      },
      body: request.body ?? null,
    }));
    return { url, response, connection };
  }

  /** Called after the last byte: keeps the connection for the next request, or closes it. */
  function finish({ url, response, connection }: Hop, request: SafeRequest, deadline: Deadline): void {
    const keep = request.reuse && response.mayContinue();
    if (keep) deadline.letGo();
    deadline.end();
    if (keep) idle.put(url.origin, connection);
  }

  return {
    async fetch(request) {
      const deadline = new Deadline(clock, request);
      try {
        let url = readUrl(request.url);
        for (let redirects = 0;; redirects++) {
          const hop = await once(url, request, deadline);
          const { status, headers, body } = hop.response;
          const location = headers.get("location");
          if (request.maxRedirects === 0 || !REDIRECTS.has(status) || location === null) {
            const ended = () => finish(hop, request, deadline);
            const next = guarded(body, { maxBytes: request.maxBytes, deadline, ended });
            return responseOf({ url, status, headers }, { next, cancel: () => deadline.end() });
          }
          if (redirects === request.maxRedirects) {
            throw new EgressError("too_many_redirects", `the target redirects more than ${redirects} times`);
          }
          deadline.release();
          url = readUrl(location, url);
        }
      } catch (error) {
        throw deadline.fail(error);
      }
    },

    async proxy(address) {
      const deadline = new Deadline(clock, { timeoutMs: VET_TIMEOUT_MS });
      try {
        const [vettedAddress] = await deadline.race(vetting.addressesOf(proxyUrl(address), PROXY_SCHEMES));
        deadline.end();
        const { makeProxy } = await import("./proxy.ts");
        return await makeProxy(address, vettedAddress!, clock);
      } catch (error) {
        throw deadline.fail(error);
      }
    },

    vet: async (url, schemes) => await vet(readUrl(url), schemes),

    vetProxy: (address) => vet(proxyUrl(address), PROXY_SCHEMES),
  };
}

/** Returns the proxy's address as a URL, for vetting. */
function proxyUrl({ host, port }: ProxyAddress): URL {
  return new URL(`http://${urlHost(host)}:${port}`);
}

/** One request in a chain of redirects. */
interface Hop {
  url: URL;
  response: PlainResponse;
  connection: ReusableConnection;
}

/** Reads the next chunk of the body within its limits; null at its end. */
type Next = () => Promise<Uint8Array<ArrayBuffer> | null>;

/** Limits the body's size and time; if reading fails, the connection is closed. */
function guarded(
  body: PlainResponse["body"],
  { maxBytes, deadline, ended }: { maxBytes: number; deadline: Deadline; ended: () => void },
): Next {
  let size = 0;
  return async () => {
    try {
      const { done, value } = await deadline.race(body.next());
      if (done) {
        ended();
        return null;
      }
      size += value.length;
      if (size > maxBytes) {
        throw new EgressError("too_large", `the answer is larger than ${maxBytes} bytes`);
      }
      return value;
    } catch (error) {
      throw deadline.fail(error);
    }
  };
}

/** Creates the body's stream only on access, because most webhook responses are discarded. */
function responseOf(
  head: Pick<SafeResponse, "url" | "status" | "headers">,
  { next, cancel }: { next: Next; cancel: () => void },
): SafeResponse {
  let stream: SafeResponse["body"] | undefined;
  return {
    ...head,
    get body() {
      return stream ??= streamOf(next, cancel);
    },
    async discard() {
      while (await next() !== null);
    },
  };
}

function streamOf(next: Next, cancel: () => void): SafeResponse["body"] {
  return new ReadableStream({
    async pull(controller) {
      try {
        const bytes = await next();
        if (bytes === null) controller.close();
        else controller.enqueue(bytes);
      } catch (error) {
        controller.error(error);
      }
    },
    cancel,
  }, { highWaterMark: 0 });
}
