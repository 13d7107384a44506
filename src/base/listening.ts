/** Binds servers of `node:net` and `node:http`. */
import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";

/** Resolves to the port once the server listens (port 0: any free one). Rejects if it cannot. */
export async function listenOn(server: Server, { port = 0, host = "127.0.0.1" } = {}): Promise<number> {
  server.listen(port, host);
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}
