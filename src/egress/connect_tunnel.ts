/**
 * Connections through an HTTP proxy by CONNECT (RFC 9110, section 9.3.6).
 *
 * `https-proxy-agent` does not work on Deno 2.6, on which the executable runs: a socket read on `readable` has already
 * started its next read when it is handed over, and the first bytes from the other side are lost.
 */
import { Buffer } from "node:buffer";
import { on, once } from "node:events";
import type { ClientRequest } from "node:http";
import net, { isIP, type Socket } from "node:net";
import tls from "node:tls";
import { urlHost } from "../base/addresses.ts";
import { listenOn } from "../base/listening.ts";
import type { Clock } from "../runtime.ts";
import type { ProxyAddress } from "./proxy_address.ts";

/** Connects to the target without TLS to it. Rejects with a readable reason. */
export type Tunnel = (request: ClientRequest, target: { host: string; port: number }) => Promise<Socket>;

/**
 * Time limit for the proxy's answer, shorter than a line's own connect timeout, so that the reason is known by then.
 */
export const ANSWER_MS = 15_000;
/** Longer response heads are refused. */
const MAX_HEAD = 16_384;

/** Returns what opens tunnels through the proxy, which has this address. Its certificate must match its host. */
export function connectTunnel(proxy: ProxyAddress, address: string, clock: Clock): Tunnel {
  const { protocol, host: name, username, password } = proxy;
  const isSecure = protocol === "https:";
  const login = Buffer.from(`${username}:${password}`).toString("base64");
  const credentials = username && `Proxy-Authorization: Basic ${login}\r\n`;
  return async (request, { host, port }) => {
    const at = { host: address, port: Number(proxy.port) };
    const socket = isSecure ? tls.connect({ ...at, ...(isIP(name) ? {} : { servername: name }) }) : net.connect(at);
    const cancel = clock.after(ANSWER_MS, () => socket.destroy(new Error("it does not answer")));
    try {
      await once(socket, isSecure ? "secureConnect" : "connect");
      const target = `${urlHost(host)}:${port}`;
      socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${credentials}\r\n`);
      const status = await statusOf(socket);
      if (status !== 200) throw new Error(status === 407 ? "it refused the login" : `it answered ${status}`);
      // The socket is paused until its new owner reads it.
      request.once("socket", (taken: Socket) => taken.resume());
      return isSecure ? await onLoopback(socket) : socket;
    } catch (error) {
      socket.destroy();
      throw error;
    } finally {
      cancel();
    }
  };
}

/**
 * Returns a paused loopback connection that relays the socket, because Deno 2.6 can speak TLS and HTTP only on native
 * connections, not inside another TLS connection.
 */
async function onLoopback(carried: Socket): Promise<Socket> {
  const server = net.createServer();
  try {
    const port = await listenOn(server);
    const accepted = on(server, "connection") as AsyncIterable<[Socket]>;
    const near = net.connect(port, "127.0.0.1").pause();
    await once(near, "connect");
    for await (const [far] of accepted) {
      if (far.remotePort === near.localPort) {
        for (const socket of [carried, far]) socket.setNoDelay(true);
        carried.on("error", () => {}).once("close", () => far.end());
        far.on("error", () => {}).once("close", () => carried.destroy());
        carried.pipe(far).pipe(carried);
        return near;
      }
      // Other processes on this machine can connect to the port too.
      far.destroy();
    }
    throw new Error("the machine accepted no connection of its own");
  } finally {
    server.close();
  }
}

/** Reads exactly the head of the proxy's response, and no byte after it. */
async function statusOf(socket: Socket): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const ended = () => reject(new Error("it hung up"));
  let read = Buffer.alloc(0);
  const take = (bytes: Buffer) => {
    read = Buffer.concat([read, bytes]);
    const end = read.indexOf("\r\n\r\n");
    if (end < 0) return read.length > MAX_HEAD && reject(new Error("its answer is none of HTTP"));
    // Synchronously, while these bytes are delivered, before the next read begins.
    socket.pause();
    socket.off("data", take);
    if (end + 4 < read.length) socket.unshift(read.subarray(end + 4));
    const [, status] = /^HTTP\/1\.[01] (\d{3})/.exec(read.toString("latin1", 0, end)) ?? [];
    if (status) resolve(Number(status));
    else reject(new Error("its answer is none of HTTP"));
  };
  socket.on("data", take).once("error", reject).once("close", ended);
  try {
    return await promise;
  } finally {
    socket.off("error", reject).off("close", ended);
  }
}
