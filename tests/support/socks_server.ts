/** A SOCKS5 proxy with a login, from a registry, that remembers where it was asked to connect. */
import { createServer } from "node:net";
import { Socks5Server } from "@pondwader/socks5-server";
import { listenOn } from "../../src/base/listening.ts";
import { connectionsOf } from "./closing.ts";

const USER = "user";
const PASSWORD = "secret-of-the-proxy";

export interface SocksServer {
  /** `socks5://user:password@127.0.0.1:port`. */
  readonly url: string;
  /** `host:port` as clients asked for them. */
  readonly targets: string[];
  close(): Promise<void>;
}

export async function startSocksServer(): Promise<SocksServer> {
  const targets: string[] = [];
  const proxy = new Socks5Server()
    .setAuthHandler(({ username, password }) => username === USER && password === PASSWORD)
    .setRulesetValidator(({ destAddress, destPort }) => targets.push(`${destAddress}:${destPort}`) > 0);
  // It does not close what it carries.
  const server = createServer((client) => proxy._handleConnection(client));
  const { close } = connectionsOf(server);
  const port = await listenOn(server);
  return {
    url: `socks5://${USER}:${PASSWORD}@127.0.0.1:${port}`,
    targets,
    close,
  };
}
