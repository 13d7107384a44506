/** Binds servers: of `node:net` and `node:http`, and the runtime's own. */
import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";

/** Resolves to the port once the server listens (port 0: any free one). Rejects if it cannot. */
export async function listenOn(server: Server, { port = 0, host = "127.0.0.1" } = {}): Promise<number> {
  server.listen(port, host);
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

interface LocalOptions extends Partial<Deno.TlsCertifiedKeyPem> {
  /** 0, the default, chooses a free one. */
  port?: number;
  onError?: (error: unknown) => Response;
}

/** Serves on 127.0.0.1 until it is closed. Throws Deno.errors.AddrInUse. */
export function serveLocally(
  { port = 0, ...options }: LocalOptions,
  answer: (request: Request) => Response | Promise<Response>,
) {
  const stop = new AbortController();
  const where = { hostname: "127.0.0.1", port, signal: stop.signal, onListen: () => {} };
  const server = Deno.serve({ ...where, ...options }, answer);
  return {
    address: `127.0.0.1:${server.addr.port}`,
    async close(): Promise<void> {
      // Aborts, because a graceful shutdown would wait for a hanging client.
      stop.abort();
      await server.finished;
    },
  };
}
