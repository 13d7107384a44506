/**
 * The one way out to addresses that users name (webhook targets, `fileUrl`).
 *
 * A name is resolved here, every address of it is vetted, and the connection goes to the very address that was vetted:
 * an answer that changes afterwards (DNS rebinding) changes nothing. Odd spellings of a host (decimal, octal, hex,
 * full-width) are made plain by the URL parser before they are vetted. Redirects are followed only where asked, and each
 * hop is vetted like the first. What was sent is never sent a second time.
 */
import ipaddr from "ipaddr.js";
import type { Clock } from "../runtime.ts";
import { type AllowList, isPublicAddress } from "./address.ts";
import { connect, hostOf, portOf } from "./connect.ts";
import { Deadline } from "./deadline.ts";
import { EgressError } from "./egress_error.ts";
import { exchange, type PlainResponse, type StreamedBody } from "./http1.ts";
import type { Proxy } from "./proxy.ts";
import type { ProxyAddress } from "./proxy_address.ts";
import { IdleConnections, ReusableConnection } from "./idle_connections.ts";
import { makeResolve, type Resolve } from "./resolve.ts";

type Scheme = "http:" | "https:";

export interface SafeRequest {
  url: string;
  method: "GET" | "POST";
  headers?: Readonly<Record<string, string>>;
  /** One that is streamed can be sent once: not with redirects. */
  body?: Uint8Array | StreamedBody;
  /** What the caller takes; hosts that the operator allows may always be called over plain http. */
  schemes: readonly Scheme[];
  /** How many redirects to follow; 0 gives the 3xx itself back. */
  maxRedirects: number;
  /** For the whole exchange, body included. */
  timeoutMs: number;
  /** The body's stream errors with `too_large` past it. */
  maxBytes: number;
  /** Whether the connection may wait for the next request to the same place, and one that waits be used. */
  reuse?: boolean;
  signal?: AbortSignal;
}

export interface SafeResponse extends Pick<PlainResponse, "status" | "headers"> {
  /** Where the answer came from, after redirects. */
  url: URL;
  /** As sent; errors where the answer is cut short, too large or late. */
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** Reads the body to its end, for nothing but to free the connection. Throws EgressError. */
  discard(): Promise<void>;
}

export interface SafeFetch {
  /** Throws EgressError. The body must be read to its end, cancelled or discarded: that frees the connection. */
  fetch(request: SafeRequest): Promise<SafeResponse>;
  /** Throws EgressError when the target may not be called. A name that does not resolve now is no reason. */
  vet(url: string, schemes: readonly Scheme[]): Promise<void>;
  /** The proxy, at an address that was vetted just now. Throws EgressError. */
  proxy(address: ProxyAddress): Promise<Proxy>;
}

interface SafeFetchOptions {
  clock: Clock;
  allow: AllowList;
  /** The system's resolver if left out. */
  resolve?: Resolve;
  /** PEM certificates that are trusted beside the system's. */
  caCerts?: string[];
  /** The only way out, where there is one: it looks names up, and what it reaches is its own concern. */
  via?: Pick<Proxy, "connect">;
}

/** Long enough for any slow name server, short enough for a client that waits for its 201. */
const VET_TIMEOUT_MS = 3_000;
const MAX_URL_LENGTH = 2_048;
export const PROXY_SCHEMES: readonly Scheme[] = ["http:", "https:"];
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** Ports of other protocols, which a request could be abused to speak (the Fetch standard's list). */
// deno-fmt-ignore
const BAD_PORTS = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110, 111,
  113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548,
  554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665,
  6666, 6667, 6668, 6669, 6679, 6697, 10080,
]);

export function makeSafeFetch(
  { clock, allow, resolve = makeResolve(), caCerts = [], via }: SafeFetchOptions,
): SafeFetch {
  const idle = new IdleConnections(clock);

  /** The addresses that may be connected to for this URL. */
  async function vetted(url: URL, schemes: readonly Scheme[]): Promise<string[]> {
    const host = hostOf(url);
    const port = portOf(url);
    const addresses = ipaddr.isValid(host) ? [host] : await resolved(host);
    const allowed = allow.allowsHost(host, port) || addresses.every((address) => allow.allowsAddress(address, port));
    if (allowed) return addresses;
    if (!addresses.every((address) => allow.allowsAddress(address, port) || isPublicAddress(address))) {
      throw new EgressError(
        "forbidden_address",
        `the host is not on the public internet; only the operator can allow it and port ${port}, with PALOMA_OUTBOUND_ALLOW`,
      );
    }
    checkUrl(url, schemes);
    return addresses;
  }

  async function resolved(host: string): Promise<string[]> {
    const addresses = await resolve(host).catch((cause) => {
      throw new EgressError("unresolved", "the host name does not resolve", { cause });
    });
    if (addresses.length === 0) throw new EgressError("unresolved", "the host name does not resolve");
    return addresses;
  }

  async function connectTo(url: URL, request: SafeRequest, deadline: Deadline): Promise<ReusableConnection> {
    const addresses = await deadline.race(vetted(url, request.schemes));
    const waiting = request.reuse ? idle.take(url.origin, addresses) : null;
    return waiting ?? await connect(url, { addresses, caCerts, deadline });
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

  /** After the last byte: the connection waits for the next request, or is closed. */
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
        const [vettedAddress] = await deadline.race(vetted(urlOf(address), PROXY_SCHEMES));
        deadline.end();
        const { makeProxy } = await import("./proxy.ts");
        return await makeProxy(address, vettedAddress!);
      } catch (error) {
        throw deadline.fail(error);
      }
    },

    async vet(text, schemes) {
      const deadline = new Deadline(clock, { timeoutMs: VET_TIMEOUT_MS });
      try {
        await deadline.race(vetted(readUrl(text), schemes));
        deadline.end();
      } catch (error) {
        const failure = deadline.fail(error);
        if (failure.code !== "unresolved" && failure.code !== "timeout") throw failure;
        const url = readUrl(text);
        if (!allow.allowsHost(hostOf(url), portOf(url))) checkUrl(url, schemes);
      }
    },
  };
}

/** Where a proxy is, as a URL that the rules can be held against. */
export function urlOf({ host, port }: ProxyAddress): URL {
  return new URL(`http://${host.includes(":") ? `[${host}]` : host}:${port}`);
}

/** The rules for hosts that the operator has not allowed. */
function checkUrl(url: URL, schemes: readonly Scheme[]): void {
  if (!schemes.some((scheme) => scheme === url.protocol)) {
    const allowed = schemes.map((scheme) => scheme + "//").join(" or ");
    throw new EgressError("forbidden_url", `the URL must begin with ${allowed}`);
  }
  if (BAD_PORTS.has(Number(url.port))) throw new EgressError("forbidden_url", `port ${url.port} may not be called`);
}

/** One request of a chain of redirects. */
interface Hop {
  url: URL;
  response: PlainResponse;
  connection: ReusableConnection;
}

function readUrl(text: string, base?: URL): URL {
  if (text.length > MAX_URL_LENGTH) throw new EgressError("forbidden_url", `the URL is longer than ${MAX_URL_LENGTH}`);
  if (!URL.canParse(text, base)) throw new EgressError("forbidden_url", "the URL is not valid");
  const url = new URL(text, base);
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    throw new EgressError("forbidden_url", "the URL must begin with https:// or http://");
  }
  if (url.username || url.password) throw new EgressError("forbidden_url", "the URL must not carry credentials");
  return url;
}

/** Reads on in the body, within its limits; null at its end. */
type Next = () => Promise<Uint8Array<ArrayBuffer> | null>;

/** Caps the body, and ties the connection to it: failed, it is closed. */
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

/** The stream of the body is made when it is asked for: most answers to webhooks are thrown away. */
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
