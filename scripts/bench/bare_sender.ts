/** The baseline of a message's way: bare Baileys, its keys in memory, writing texts and awaiting their acks. */
import process from "node:process";
import type { WASocket } from "@whiskeysockets/baileys";
import { connectBareLines, readBareLines } from "./bare_lines.ts";
import { runAsChild } from "./child.ts";
import type { NetworkReady } from "./network.ts";
import type { Sends, Sent } from "./way.ts";

export interface BareSender {
  network: NetworkReady;
  folder: string;
  /** Each message is written here in a commit of its own first; null: nowhere. */
  path: string | null;
}

if (import.meta.main) {
  await runAsChild<BareSender, Sends>(async ({ network, folder, path }) => {
    const kv = path === null ? null : await Deno.openKv(path);
    const [socket] = await connectBareLines(network, await readBareLines(folder, 1));
    return { ready: true, answer: (sends) => sendAll(socket!, kv, sends) };
  });
}

async function sendAll(socket: WASocket, kv: Deno.Kv | null, { to, count, atOnce, text }: Sends): Promise<Sent> {
  const acked = Promise.withResolvers<void>();
  let left = count;
  const heard = () => --left === 0 && acked.resolve();
  socket.ws.on("CB:ack,class:message", heard);
  const began = performance.now();
  const cpu = process.cpuUsage();
  let next = 0;
  await Promise.all(Array.from({ length: atOnce }, async () => {
    while (next < count) {
      const i = next++;
      await kv?.set(["message", crypto.randomUUID()], { to: to[i % to.length], text });
      await socket.sendMessage(`${to[i % to.length]}@s.whatsapp.net`, { text });
    }
  }));
  await acked.promise;
  const { user, system } = process.cpuUsage(cpu);
  socket.ws.off("CB:ack,class:message", heard);
  return { usedMs: (user + system) / 1000, tookMs: performance.now() - began };
}
