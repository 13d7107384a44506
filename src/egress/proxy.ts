/**
 * A way out of its own: every connection through one proxy (HTTP, HTTPS or SOCKS5), names looked up there.
 *
 * Users name the proxy, so it is vetted as any address that they name, and the connection goes to the address that was
 * vetted. There is no way past it: what the proxy does not carry is not sent.
 */
import { EventEmitter, once } from "node:events";
import type { ClientRequest } from "node:http";
import { isIP, type Socket } from "node:net";
import tls from "node:tls";
import type { AgentConnectOpts } from "agent-base";
import type { SocksProxyAgent } from "socks-proxy-agent";
import { ConnectAgent } from "./connect_agent.ts";
import { EgressError } from "./egress_error.ts";
import type { ByteConnection } from "./http1.ts";
import { type ProxyAddress, shownProxy, urlHost } from "./proxy_address.ts";

export interface Proxy {
  /** For a WebSocket. */
  readonly agent: ConnectAgent | SocksProxyAgent;
  /** A connection to the URL's host, TLS included. Throws EgressError. */
  connect(url: URL, caCerts: string[]): Promise<ByteConnection>;
  /** Why the proxy did not carry the last connection, one sentence; null when it did. */
  failure(): string | null;
}

/** `address` is what the proxy's host resolved to, vetted. */
export async function makeProxy(proxy: ProxyAddress, address: string): Promise<Proxy> {
  const agent = proxy.protocol === "socks5:" ? await socksAgent(proxy, address) : httpAgent(proxy, address);
  let failure: string | null = null;

  const open = agent.connect.bind(agent) as (request: ClientRequest, options: AgentConnectOpts) => Promise<Socket>;
  /** Without TLS of the target's. */
  const tunnel = async (request: ClientRequest, options: AgentConnectOpts) => {
    failure = null;
    try {
      return await open(request, { ...options, secureEndpoint: false } as AgentConnectOpts);
    } catch (error) {
      failure = `The proxy ${shownProxy(proxy)} does not carry the connection: ${reasonOf(error)}.`;
      throw error;
    }
  };
  agent.connect = (async (request: ClientRequest & { _encrypted?: true }, options: AgentConnectOpts) => {
    const socket = await tunnel(request, options);
    // A request of Deno 2.6 begins TLS itself, and says so in this field.
    return options.secureEndpoint && !request._encrypted ? await secured(socket, options.host!, []) : socket;
  }) as typeof agent.connect;

  return {
    agent,
    failure: () => failure,
    async connect(url, caCerts) {
      const isSecure = url.protocol === "https:";
      const hostname = url.hostname.replace(/^\[|\]$/g, "");
      const port = Number(url.port) || (isSecure ? 443 : 80);
      try {
        const target = { host: hostname, port } as AgentConnectOpts;
        const socket = await tunnel(new EventEmitter() as ClientRequest, target);
        return bytesOf(isSecure ? await secured(socket, hostname, caCerts) : socket);
      } catch (error) {
        throw new EgressError("unreachable", failure ?? "the host cannot be reached through the proxy", {
          cause: error,
        });
      }
    },
  };
}

/** Names are looked up by the proxy: that is what the `h` says. */
async function socksAgent({ port, username, password }: ProxyAddress, address: string): Promise<SocksProxyAgent> {
  const { SocksProxyAgent } = await import("socks-proxy-agent");
  const login = username ? `${encodeURIComponent(username)}:${encodeURIComponent(password)}@` : "";
  return new SocksProxyAgent(`socks5h://${login}${urlHost(address)}:${port}`);
}

function httpAgent(proxy: ProxyAddress, address: string): ConnectAgent {
  const { protocol, host, port, username, password } = proxy;
  const login = username ? `${username}:${password}` : "";
  return new ConnectAgent({ host: address, port: Number(port), secureAs: protocol === "https:" ? host : null, login });
}

/** TLS inside the tunnel; the certificate must be the host's. */
async function secured(tunnel: Socket, host: string, caCerts: string[]): Promise<Socket> {
  const ca = caCerts.length > 0 ? { ca: [...tls.rootCertificates, ...caCerts] } : {};
  const socket = tls.connect({ socket: tunnel, host, ...(isIP(host) ? {} : { servername: host }), ...ca });
  await once(socket, "secureConnect");
  return socket;
}

/** A socket of `node:net` as connections are used here. */
function bytesOf(socket: Socket): ByteConnection {
  const chunks = socket[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  let left: Uint8Array = new Uint8Array(0);
  socket.on("error", () => {}); // whoever reads or writes hears of it
  return {
    async read(into) {
      while (left.length === 0) {
        const { done, value } = await chunks.next();
        if (done) return null;
        left = value;
      }
      const taken = left.subarray(0, into.length);
      into.set(taken);
      left = left.subarray(taken.length);
      return taken.length;
    },
    write: (bytes) =>
      new Promise((resolve, reject) => {
        socket.write(bytes.slice(), (error) => error ? reject(error) : resolve(bytes.length));
      }),
    close: () => void socket.destroy(),
  };
}

function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : "unknown").slice(0, 200);
}
