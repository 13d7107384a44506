/**
 * Small inputs that unpack to large ones, or hold very many members, at 1, 2, 10 and 100 times the size that once ended
 * a gateway: parts of a history, files of settings, messages that a phone resends, pages of a link's preview. Each goes
 * through the code that reads it in a gateway, in this process. Exits 0 if the event loop was never held for more than
 * 100 ms and memory never grew by more than 150 MB, else 1.
 */
import { Buffer } from "node:buffer";
import { deflateSync } from "node:zlib";
import { encodeWAMessage, proto } from "@whiskeysockets/baileys";
import { makeReadOutside } from "../../src/inspect/inspector.ts";
import { headOf } from "../../src/message/link_preview.ts";
import { systemClock } from "../../src/runtime.ts";
import { decode, type DecodeContext } from "../../src/whatsapp/baileys/incoming/decode.ts";

const MOST_HELD_MS = 100;
const MOST_GROWN_BYTES = 150 * 1024 ** 2;
const LOOK_MS = 5;
const readOutside = makeReadOutside({ clock: systemClock });
const context = {
  me: { id: "551:1@s.whatsapp.net" },
  clock: systemClock,
  isLost: () => Promise.resolve(false),
} as Partial<DecodeContext> as DecodeContext;

/** Makes each bomb in the given size, and explodes it. */
const BOMBS: Record<string, (times: number) => () => Promise<unknown>> = {
  /** At 1: 2 MB of empty conversations. */
  history(times) {
    const packed = deflateSync(Buffer.alloc(2_000_000 * times, Buffer.from([0x12, 0])));
    return () => readOutside({ read: "history" }, packed, "ses_1");
  },
  /** At 1: 640 KB of empty records; a file has 64 MB at most. */
  settings(times) {
    const bytes = Buffer.alloc(640_000 * times, Buffer.from([0x0a, 0]));
    return () => readOutside({ read: "settings", form: "mutations", wanted: [] }, bytes, "ses_1");
  },
  /** At 1: 200 messages; a frame of the network holds no more than 16 MB. */
  resends(times) {
    const webMessageInfoBytes = proto.WebMessageInfo.encode({ key: { remoteJid: "1@lid", id: "A" } }).finish();
    const result = { placeholderMessageResendResponse: { webMessageInfoBytes } };
    const answer = { peerDataOperationResult: new Array(200 * times).fill(result) };
    const protocolMessage = { peerDataOperationRequestResponseMessage: answer };
    const plaintext = encodeWAMessage(proto.Message.fromObject({ protocolMessage }));
    const attrs = { id: "P", from: "551@s.whatsapp.net", t: "1768478400", category: "peer" };
    return () => decode({ attrs, plaintext }, context);
  },
  /** At 1: 5 KB of tags; of a page 512 KB are read. */
  page(times) {
    const html = "<a>".repeat(49 * times) + "</b>".repeat(1_240 * times);
    return () => headOf(html);
  },
};

let passed = true;
await headOf("<title>warm</title>");
await readOutside({ read: "history" }, deflateSync(new Uint8Array(0)), "ses_1");
for (const [name, make] of Object.entries(BOMBS)) {
  for (const times of [1, 2, 10, 100]) {
    const explode = make(times);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const idle = Deno.memoryUsage().rss;
    let [heldMs, peak, last] = [0, idle, performance.now()];
    const look = setInterval(() => {
      const now = performance.now();
      heldMs = Math.max(heldMs, now - last - LOOK_MS);
      last = now;
      peak = Math.max(peak, Deno.memoryUsage().rss);
    }, LOOK_MS);
    const outcome = await explode().then(() => "read", (error) => `refused: ${error.message}`);
    await new Promise((resolve) => setTimeout(resolve, 2 * LOOK_MS));
    clearInterval(look);
    const grown = peak - idle;
    passed &&= heldMs <= MOST_HELD_MS && grown <= MOST_GROWN_BYTES;
    console.log(
      `${name} ${times}x: ${outcome}; held ${Math.round(heldMs)} ms, memory +${Math.round(grown / 1024 ** 2)} MB`,
    );
  }
}
console.log(passed ? "passed" : "FAILED");
Deno.exit(passed ? 0 : 1);
