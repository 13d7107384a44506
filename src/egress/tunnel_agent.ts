/**
 * Opens the connections of WebSockets, directly or through a proxy, with TCP_NODELAY from the start: without it every
 * second frame waits 40 ms for the delayed ACK of the one before. On Deno 2.6 it cannot be set later, because the
 * socket that a request hands over after its upgrade is another one.
 */
import { once } from "node:events";
import type { ClientRequest } from "node:http";
import net, { isIP, type Socket } from "node:net";
import tls from "node:tls";
import { Agent, type AgentConnectOpts } from "agent-base";
import type { Clock } from "../runtime.ts";
import { ANSWER_MS, type Tunnel } from "./connect_tunnel.ts";

export class TunnelAgent extends Agent {
  readonly #tunnel: Tunnel;
  readonly #clock: Clock;
  readonly #isSecure: boolean;

  /** `url`: all requests are for its protocol, `ws:` or `wss:`. */
  constructor(tunnel: Tunnel, url: URL, clock: Clock) {
    super();
    this.#tunnel = tunnel;
    this.#clock = clock;
    this.#isSecure = url.protocol === "wss:";
  }

  /** The base class looks for the https module in a stack trace: four a connection, 2 ms in all. */
  override isSecureEndpoint(): boolean {
    return this.#isSecure;
  }

  override async connect(
    request: ClientRequest & { _encrypted?: true },
    { host, port }: AgentConnectOpts,
  ): Promise<Socket> {
    const socket = await this.#tunnel(request, { host: host!, port });
    socket.setNoDelay(true);
    // On Deno 2.6 the request starts TLS itself and says so in this field.
    if (!this.#isSecure || request._encrypted) return socket;
    return await secured(socket, host!, { caCerts: [], clock: this.#clock });
  }
}

/** Returns an agent that connects without a proxy. */
export function directAgent(url: URL, clock: Clock): Agent {
  return new TunnelAgent(
    async (request, target) => {
      // Paused until its new owner reads it, as in `connect_tunnel.ts`.
      const socket = net.connect(target).pause();
      request.once("socket", (taken: Socket) => taken.resume());
      const abandon = () => socket.destroy(new Error("the request was given up"));
      request.once("close", abandon);
      try {
        await once(socket, "connect");
        return socket;
      } finally {
        request.off("close", abandon);
      }
    },
    url,
    clock,
  );
}

/** Starts TLS inside the tunnel; the certificate must match the host. */
export async function secured(
  tunnel: Socket,
  host: string,
  { caCerts, clock }: { caCerts: string[]; clock: Clock },
): Promise<Socket> {
  const ca = caCerts.length > 0 ? { ca: [...tls.rootCertificates, ...caCerts] } : {};
  const socket = tls.connect({ socket: tunnel, host, ...(isIP(host) ? {} : { servername: host }), ...ca });
  const cancel = clock.after(ANSWER_MS, () => socket.destroy(new Error("the host does not answer")));
  try {
    await once(socket, "secureConnect");
    return socket;
  } finally {
    cancel();
  }
}
