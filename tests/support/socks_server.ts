/** A SOCKS5 proxy with a login (RFC 1928, RFC 1929) that remembers where it was asked to connect. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export interface SocksServer {
  /** `socks5://user:password@127.0.0.1:port`. */
  readonly url: string;
  /** `host:port` as clients asked for them. */
  readonly targets: string[];
  close(): Promise<void>;
}

export async function startSocksServer(): Promise<SocksServer> {
  const targets: string[] = [];
  const sockets = new Set<Socket>();
  const server: Server = createServer((client) => {
    sockets.add(client);
    client.on("error", () => client.destroy());
    serve(client, targets).catch(() => client.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `socks5://user:secret-of-the-proxy@127.0.0.1:${(server.address() as AddressInfo).port}`,
    targets,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

async function serve(client: Socket, targets: string[]): Promise<void> {
  const next = async () => (await once(client, "data"))[0] as Uint8Array;
  await next();
  client.write(Uint8Array.of(5, 2));
  const login = await next();
  const userEnd = 2 + login[1]!;
  const password = new TextDecoder().decode(login.subarray(userEnd + 1));
  if (password !== "secret-of-the-proxy") return void client.end(Uint8Array.of(1, 1));
  client.write(Uint8Array.of(1, 0));
  const request = await next();
  const hostEnd = request[3] === 3 ? 5 + request[4]! : 8;
  const host = request[3] === 3
    ? new TextDecoder().decode(request.subarray(5, hostEnd))
    : request.subarray(4, 8).join(".");
  const port = (request[hostEnd]! << 8) | request[hostEnd + 1]!;
  targets.push(`${host}:${port}`);
  const target = connect(port, host);
  target.on("error", () => client.destroy());
  await once(target, "connect");
  client.write(Uint8Array.of(5, 0, 0, 1, 0, 0, 0, 0, 0, 0));
  client.pipe(target).pipe(client);
  client.on("close", () => target.destroy());
}
