/** Binds servers of `node:net` and `node:http`. */
import type { Server } from "node:net";

/** Resolves to the port once the server listens (port 0: any free one). Rejects if it cannot. */
export async function listenOn(server: Server, { port = 0, host = "127.0.0.1" } = {}): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return address.port;
}
