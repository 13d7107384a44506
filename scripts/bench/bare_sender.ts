/** The baselines of a message's way: bare Baileys, its keys in memory, writing texts and awaiting their acks. */
import process from "node:process";
import { type BinaryNode, generateMessageIDV2, type WASocket } from "@whiskeysockets/baileys";
import { connectBareLines, readBareLines } from "./bare_lines.ts";
import { runAsChild } from "./child.ts";
import type { NetworkReady } from "./network.ts";
import type { Sends, Sent } from "./way.ts";

export interface BareSender {
  network: NetworkReady;
  folder: string;
  /** Each message is written here in a commit of its own first; null: nowhere. */
  path: string | null;
  /** Each waits for the ack of the one before, as a line of the gateway does; what the gateway switches off is off. */
  inTurn: boolean;
}

/** With a limit the library keeps a stack trace of each frame: more than half of its time where it is called in turn. */
const WITHOUT_LIMIT = { connectTimeoutMs: 0 };

if (import.meta.main) {
  await runAsChild<BareSender, Sends>(async ({ network, folder, path, inTurn }) => {
    const kv = path === null ? null : await Deno.openKv(path);
    const lines = await readBareLines(folder, 1);
    const [socket] = await connectBareLines(network, lines, inTurn ? WITHOUT_LIMIT : {});
    const send = async (to: string, text: string, messageId: string) => {
      await kv?.set(["message", messageId], { to, text });
      await socket!.sendMessage(`${to}@s.whatsapp.net`, { text }, { messageId });
    };
    return { ready: true, answer: (sends) => sendAll(socket!, send, { ...sends, inTurn }) };
  });
}

async function sendAll(
  socket: WASocket,
  send: (to: string, text: string, messageId: string) => Promise<void>,
  { to, count, atOnce, text, inTurn }: Sends & Pick<BareSender, "inTurn">,
): Promise<Sent> {
  const waiting = new Map<string, () => void>();
  const heard = ({ attrs }: BinaryNode) => waiting.get(attrs.id!)?.();
  socket.ws.on("CB:ack,class:message", heard);
  const began = performance.now();
  const cpu = process.cpuUsage();
  const acked: Promise<void>[] = [];
  let next = 0;
  await Promise.all(Array.from({ length: inTurn ? 1 : atOnce }, async () => {
    while (next < count) {
      const i = next++;
      const messageId = generateMessageIDV2(socket.user?.id);
      const ack = new Promise<void>((resolve) => waiting.set(messageId, resolve));
      acked.push(ack);
      await send(to[i % to.length]!, text, messageId);
      if (inTurn) await ack;
    }
  }));
  await Promise.all(acked);
  const { user, system } = process.cpuUsage(cpu);
  socket.ws.off("CB:ack,class:message", heard);
  return { usedMs: (user + system) / 1000, tookMs: performance.now() - began };
}
