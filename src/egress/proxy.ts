/**
 * Sends every connection through one proxy (HTTP, HTTPS or SOCKS5), which also resolves names.
 *
 * The proxy is given by a user, so it is vetted like any user-given address, and the connection goes to the vetted
 * address. There is no fallback: what the proxy does not carry is not sent.
 */
import { EventEmitter } from "node:events";
import type { ClientRequest } from "node:http";
import type { Socket } from "node:net";
import type { Agent } from "agent-base";
import { hostOf, portOf, urlHost } from "../base/addresses.ts";
import type { Clock } from "../runtime.ts";
import { ANSWER_MS, connectTunnel, type Tunnel } from "./connect_tunnel.ts";
import { EgressError, reasonOf } from "./egress_error.ts";
import type { ByteConnection } from "./http1.ts";
import { type ProxyAddress, shownProxy } from "./proxy_address.ts";
import { secured, TunnelAgent } from "./tunnel_agent.ts";

export interface Proxy {
  /** Returns an agent for the WebSocket to the URL. */
  agentFor(url: URL): Agent;
  /** Connects to the URL's host, with TLS for https. Throws EgressError. */
  connect(url: URL, caCerts: string[]): Promise<ByteConnection>;
  /** Why the last connection through the proxy failed, in one sentence; null if it succeeded. */
  failure(): string | null;
}

/** Returns the proxy. `address`: the vetted address of the proxy's host. */
export async function makeProxy(proxy: ProxyAddress, address: string, clock: Clock): Promise<Proxy> {
  const { protocol } = proxy;
  const open = protocol === "socks5:" ? await socksTunnel(proxy, address) : connectTunnel(proxy, address, clock);
  let failure: string | null = null;
  const tunnel: Tunnel = async (request, target) => {
    failure = null;
    try {
      return await open(request, target);
    } catch (error) {
      failure = `The proxy ${shownProxy(proxy)} does not carry the connection: ${reasonOf(error)}.`;
      throw error;
    }
  };
  return {
    agentFor: (url) => new TunnelAgent(tunnel, url, clock),
    failure: () => failure,
    async connect(url, caCerts) {
      const host = hostOf(url);
      try {
        const socket = await tunnel(new EventEmitter() as ClientRequest, { host, port: portOf(url) });
        return bytesOf(url.protocol === "https:" ? await secured(socket, host, { caCerts, clock }) : socket);
      } catch (error) {
        throw new EgressError("unreachable", failure ?? "the host cannot be reached through the proxy", {
          cause: error,
        });
      }
    },
  };
}

/** The `h` lets the proxy resolve names. */
async function socksTunnel({ port, username, password }: ProxyAddress, address: string): Promise<Tunnel> {
  const { SocksProxyAgent } = await import("socks-proxy-agent");
  const login = username ? `${encodeURIComponent(username)}:${encodeURIComponent(password)}@` : "";
  const agent = new SocksProxyAgent(`socks5h://${login}${urlHost(address)}:${port}`, { timeout: ANSWER_MS });
  return (request, target) => agent.connect(request, { ...target, secureEndpoint: false });
}

/** Adapts a `node:net` socket to the interface used here. */
function bytesOf(socket: Socket): ByteConnection {
  const chunks: AsyncIterator<Uint8Array> = socket[Symbol.asyncIterator]();
  let left: Uint8Array = new Uint8Array(0);
  socket.on("error", () => {}); // reads and writes report it
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
