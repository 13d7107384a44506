/**
 * One client's connection: frames, then the handshake, then stanzas in order. It does not know the client's identity.
 */
import { Buffer } from "node:buffer";
import { decodeBinaryNode, encodeBinaryNode } from "@whiskeysockets/baileys";
import PQueue from "p-queue";
// @ts-types="@types/ws"
import type { WebSocket } from "ws";
import { type ClientFinish, createNoiseResponder, type NoiseIdentity, WA_HEADER } from "./noise.ts";
import { type BinaryNode, element } from "../world/stanza.ts";
import type { Runtime } from "../../runtime.ts";

/** A client that takes longer for its handshake is disconnected. */
const HANDSHAKE_TIMEOUT_MS = 20_000;

/** How long a client has to read the last stanza before the network closes the connection. */
const CLOSE_DELAY_MS = 1_000;

interface ServeOptions {
  identity: NoiseIdentity;
  runtime: Runtime;
  /** Called when the handshake is done; returns the receiver of later stanzas. */
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
  /** Closes immediately, without a stanza. */
  cut(): void;
  /** Closes like `cut`, because the client violated the protocol. */
  fail(error: unknown): void;
}

/** Serves one WebSocket until it closes. */
export function serveSocket(ws: WebSocket, { identity, runtime, admit }: ServeOptions): void {
  const reader = new FrameReader();
  const noise = createNoiseResponder(identity);
  let stage: "hello" | "finish" | "open" = "hello";
  let owner: SocketOwner | null = null;
  /**
   * This side has ended the connection. If the client closes it instead, the stanzas that it sent before still count.
   */
  let ended = false;
  // Decoding is asynchronous (stanzas may be compressed); the queue keeps their order.
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
      // Give the client time to read the reason; it then closes the connection itself.
      runtime.clock.after(CLOSE_DELAY_MS, () => ws.close());
    },
    cut() {
      ended = true;
      ws.terminate();
    },
    fail(error) {
      runtime.log.warn({ err: error }, "a client violated the protocol");
      socket.cut();
    },
  };

  const open = (finish: ClientFinish) => {
    stage = "open";
    cancelTimeout();
    owner = admit(finish, socket);
  };

  const receive = (data: Uint8Array) => {
    if (stage === "hello") {
      const answer = noise.hello(data);
      ws.send(frame(answer.frame));
      stage = "finish";
      if (answer.resumed) open(answer.resumed);
    } else if (stage === "finish") {
      open(noise.finish(data));
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
  // An error is always followed by a close event, which is handled below.
  ws.on("error", (error: Error) => runtime.log.debug({ err: error }, "a client's connection failed"));
  ws.on("close", async () => {
    cancelTimeout();
    await decoding.onIdle();
    owner?.onClose();
  });
}

/** More than any stanza that a client sends; media does not pass here. */
const MAX_FRAME_BYTES = 8 * 1024 * 1024;

/** Splits a byte stream into frames. Throws if the intro is not WhatsApp's or a frame is too long. */
export class FrameReader {
  #pending = Buffer.alloc(0);
  #introduced = false;

  /** Returns the frames that `chunk` completes, in order. */
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

  /**
   * Reads the intro: `WA` and versions. A client with routing information first sends `ED`, 0, 1, and that information
   * with its length.
   */
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

/** Prepends the length, in 3 bytes. */
function frame(data: Uint8Array): Buffer {
  const length = Buffer.alloc(3);
  length.writeUIntBE(data.length, 0, 3);
  return Buffer.concat([length, data]);
}
