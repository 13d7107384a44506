/** The baseline of what is received: bare Baileys, its keys in memory, one line that posts each text. */
import { Agent, request } from "node:http";
import process from "node:process";
import { connectBareLines, readBareLines } from "./bare_lines.ts";
import { runAsChild } from "./child.ts";
import type { NetworkReady } from "./network.ts";

export interface BareReceiver {
  network: NetworkReady;
  folder: string;
  /** Of the receiver of webhooks. A delivery's id is the text. */
  url: string;
  /** A Deno KV file to which each text is written in a commit of its own before it is posted; null: nothing is kept. */
  path: string | null;
}

/** Processor time since it was last asked, ms. */
export interface BareUse {
  usedMs: number;
}

if (import.meta.main) {
  await runAsChild<BareReceiver>(async ({ network, folder, url, path }) => {
    const kv = path === null ? null : await Deno.openKv(path);
    const [socket] = await connectBareLines(network, await readBareLines(folder, 1));
    const agent = new Agent({ keepAlive: true });
    socket!.ev.on("messages.upsert", async ({ messages }) => {
      for (const { key, message } of messages) {
        const text = message?.conversation ?? message?.extendedTextMessage?.text;
        if (!text) continue;
        await kv?.set(["message", key.id!], { text });
        const headers = { "content-type": "application/json", "webhook-id": text };
        const post = request(url, { method: "POST", agent, headers }, (response) => response.resume());
        post.end(JSON.stringify({ event: "message.received", data: { text } }));
      }
    });
    let before = process.cpuUsage();
    return {
      ready: true,
      answer() {
        const { user, system } = process.cpuUsage(before);
        before = process.cpuUsage();
        const use: BareUse = { usedMs: (user + system) / 1000 };
        return Promise.resolve(use);
      },
    };
  });
}
