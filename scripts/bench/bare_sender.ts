/** The baselines of a message's way: bare Baileys, its keys in memory, lines that take turns to write texts and await their acks. */
import process from "node:process";
import { type BinaryNode, generateMessageIDV2, type WASocket } from "@whiskeysockets/baileys";
import { connectBareLines, readBareLines } from "./bare_lines.ts";
import { runAsChild } from "./child.ts";
import type { NetworkReady } from "./network.ts";
import { recipientOf } from "./sends.ts";
import type { Sends, Sent } from "./way.ts";

export interface BareSender {
  network: NetworkReady;
  folder: string;
  /** How many take turns. */
  lines: number;
  /** Each message is written here in a commit of its own first; null: nowhere. */
  path: string | null;
  /** Each waits for the ack of the one before, as a line of the gateway does; what the gateway switches off is off. */
  inTurn: boolean;
}

/** With a limit the library keeps a stack trace of each frame: more than half of its time where it is called in turn. */
const WITHOUT_LIMIT = { connectTimeoutMs: 0 };

if (import.meta.main) {
  await runAsChild<BareSender, Sends>(async ({ network, folder, lines, path, inTurn }) => {
    const kv = path === null ? null : await Deno.openKv(path);
    const sockets = await connectBareLines(network, await readBareLines(folder, lines), inTurn ? WITHOUT_LIMIT : {});
    const send: Send = async (socket, to, text, messageId) => {
      await kv?.set(["message", messageId], { to, text });
      await socket.sendMessage(`${to}@s.whatsapp.net`, { text }, { messageId });
    };
    return { ready: true, answer: (sends) => sendAll(sockets, send, { ...sends, inTurn }) };
  });
}

type Send = (socket: WASocket, to: string, text: string, messageId: string) => Promise<void>;

async function sendAll(
  sockets: readonly WASocket[],
  send: Send,
  { to, count, atOnce, text, inTurn }: Sends & Pick<BareSender, "inTurn">,
): Promise<Sent> {
  const waiting = new Map<string, () => void>();
  const heard = ({ attrs }: BinaryNode) => waiting.get(attrs.id!)?.();
  for (const { ws } of sockets) ws.on("CB:ack,class:message", heard);
  const began = performance.now();
  const cpu = process.cpuUsage();
  const acked: Promise<void>[] = [];
  let next = 0;
  await Promise.all(Array.from({ length: inTurn ? 1 : atOnce }, async () => {
    while (next < count) {
      const i = next++;
      const socket = sockets[i % sockets.length]!;
      const messageId = generateMessageIDV2(socket.user?.id);
      const ack = new Promise<void>((resolve) => waiting.set(messageId, resolve));
      acked.push(ack);
      await send(socket, recipientOf(i, { lines: sockets.length, to }), text, messageId);
      if (inTurn) await ack;
    }
  }));
  await Promise.all(acked);
  const { user, system } = process.cpuUsage(cpu);
  for (const { ws } of sockets) ws.off("CB:ack,class:message", heard);
  return { usedMs: (user + system) / 1000, tookMs: performance.now() - began };
}
