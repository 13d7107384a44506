/** One client's connection: frames, handshake, then stanzas in order. Knows nothing of who the client is. */
import { Buffer } from "node:buffer";
import { decodeBinaryNode, encodeBinaryNode } from "@whiskeysockets/baileys";
import PQueue from "p-queue";
// @ts-types="@types/ws"
import type { WebSocket } from "ws";
import { type ClientFinish, createNoiseResponder, type NoiseIdentity, WA_HEADER } from "./noise.ts";
import { type BinaryNode, element } from "../world/stanza.ts";
import type { Runtime } from "../../runtime.ts";

/** A client that does not finish its handshake in this time is disconnected. */
const HANDSHAKE_TIMEOUT_MS = 20_000;

/** How long a client has to read the last stanza before the network closes the connection. */
const LAST_WORD_MS = 1_000;

interface ServeOptions {
  identity: NoiseIdentity;
  runtime: Runtime;
  /** The handshake is done; the answer takes the stanzas from here on. */
  admit(finish: ClientFinish, socket: CompanionSocket): SocketOwner;
}

export interface SocketOwner {
  onStanza(stanza: BinaryNode): void;
  onClose(): void;
}

export interface CompanionSocket {
  send(stanza: BinaryNode): void;
  /** Sends a last stanza, ends the stream and closes. */
  end(last: BinaryNode): void;
  /** Closes at once, without a word. */
  cut(): void;
  /** The same, for the client broke the protocol. */
  fail(error: unknown): void;
}

/** Serves one WebSocket until it closes. */
export function serveSocket(ws: WebSocket, { identity, runtime, admit }: ServeOptions): void {
  const reader = new FrameReader();
  const noise = createNoiseResponder(identity);
  let stage: "hello" | "finish" | "open" = "hello";
  let owner: SocketOwner | null = null;
  /** This side is done with the connection; what the client sent before closing it itself still counts. */
  let ended = false;
  // Decoding is asynchronous (stanzas may be deflated); a queue keeps their order.
  const decoding = new PQueue({ concurrency: 1 });
  const cancelTimeout = runtime.clock.after(HANDSHAKE_TIMEOUT_MS, () => stage !== "open" && ws.terminate());

  const socket: CompanionSocket = {
    send(stanza) {
      if (!ended && ws.readyState === ws.OPEN) ws.send(frame(noise.encrypt(encodeBinaryNode(stanza))));
    },
    end(last) {
      if (ended) return;
      socket.send(last);
      socket.send(element("xmlstreamend"));
      ended = true;
      // A client that is cut at once may not have read why; once it has, it closes by itself.
      runtime.clock.after(LAST_WORD_MS, () => ws.close());
    },
    cut() {
      ended = true;
      ws.terminate();
    },
    fail(error) {
      runtime.log.warn({ err: error }, "a client's connection broke the protocol");
      socket.cut();
    },
  };

  const receive = (data: Uint8Array) => {
    if (stage === "hello") {
      ws.send(frame(noise.hello(data)));
      stage = "finish";
    } else if (stage === "finish") {
      const finish = noise.finish(data);
      stage = "open";
      cancelTimeout();
      owner = admit(finish, socket);
    } else {
      const plain = Buffer.from(noise.decrypt(data));
      decoding.add(async () => {
        const stanza = await decodeBinaryNode(plain);
        if (!ended) owner?.onStanza(stanza);
      }).catch(socket.fail);
    }
  };

  ws.on("message", (chunk: Uint8Array) => {
    if (ended) return;
    try {
      for (const data of reader.push(new Uint8Array(chunk))) receive(data);
    } catch (error) {
      socket.fail(error);
    }
  });
  // An error is always followed by a close, which is what counts.
  ws.on("error", (error: Error) => runtime.log.debug({ err: error }, "a client's connection failed"));
  ws.on("close", async () => {
    cancelTimeout();
    await decoding.onIdle();
    owner?.onClose();
  });
}

/** Longer than any stanza that a client sends; media goes elsewhere. */
const MAX_FRAME_BYTES = 8 * 1024 * 1024;

/** Cuts a byte stream into frames. Throws when the intro is not WhatsApp's or a frame is too long. */
export class FrameReader {
  #pending = Buffer.alloc(0);
  #introduced = false;

  /** The frames that `chunk` completes, in order. */
  push(chunk: Uint8Array): Uint8Array[] {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    if (!this.#introduced && !this.#readIntro()) return [];
    const frames: Uint8Array[] = [];
    while (this.#pending.length >= 3) {
      const length = this.#pending.readUIntBE(0, 3);
      if (length > MAX_FRAME_BYTES) throw new Error("a frame is too long");
      if (this.#pending.length < 3 + length) break;
      frames.push(this.#pending.subarray(3, 3 + length));
      this.#pending = this.#pending.subarray(3 + length);
    }
    return frames;
  }

  /** The intro is `WA` and versions; a client with routing information puts `ED`, 0, 1, length and that before it. */
  #readIntro(): boolean {
    let start = 0;
    if (this.#pending[0] === 0x45 && this.#pending[1] === 0x44) {
      if (this.#pending.length < 7) return false;
      start = 7 + this.#pending.readUIntBE(4, 3);
    }
    if (this.#pending.length < start + WA_HEADER.length) return false;
    if (!WA_HEADER.every((byte, i) => this.#pending[start + i] === byte)) {
      throw new Error("the intro is not WhatsApp's");
    }
    this.#pending = this.#pending.subarray(start + WA_HEADER.length);
    this.#introduced = true;
    return true;
  }
}

/** A frame with its length, of 3 bytes, before it. */
function frame(data: Uint8Array): Buffer {
  const length = Buffer.alloc(3);
  length.writeUIntBE(data.length, 0, 3);
  return Buffer.concat([length, data]);
}
