/**
 * The simulated WhatsApp network, put together: a server that speaks the protocol to any client of it, over a real
 * WebSocket and TLS, with phones in this process. Its state lives in memory and outlives a gateway that is killed.
 */
import { Buffer } from "node:buffer";
import type { Phone } from "./device.ts";
import { controlApp } from "./control.ts";
import type { Account } from "./directory.ts";
import { openGate } from "./gate.ts";
import { type MediaHost, startMedia } from "./media.ts";
import { createNoiseIdentity } from "./noise.ts";
import { createPhone } from "./phone/phone.ts";
import { RefBook } from "./ref_book.ts";
import { createSwitchboard, type Switchboard } from "./switchboard.ts";
import { createUplink } from "./uplink.ts";
import { invalid } from "../errors.ts";
import type { Runtime } from "../runtime.ts";

/** As on the real network: the code that a companion shows is good for three minutes. */
const CODE_LIFETIME_MS = 180_000;

export interface NetworkOptions {
  runtime: Runtime;
  /** Port of the WebSocket; 0, the default, takes a free one. */
  port?: number;
  /** Port of the control API; 0, the default, takes a free one. */
  controlPort?: number;
  /** The refresh stage of linking (`companion_reg_refresh`); on unless false. */
  refresh?: boolean;
  /** How long a pairing code is good before the companion is told `refresh_code`. */
  codeLifetimeMs?: number;
}

/** A running network, as its control API works it. */
export interface OpenNetwork {
  /** The WebSocket's address. */
  readonly url: string;
  /** Hex of the Noise root key that a client has to pin. */
  readonly rootKey: string;
  /** Base address of the media host, and the authority that vouches for its certificate. */
  readonly mediaUrl: string;
  readonly caPem: string;
  readonly switchboard: Switchboard;
  readonly media: MediaHost;
  /** Opens an account and switches its phone on. Throws Problem validation_failed when the number is taken. */
  addPhone(number: string, options?: { name?: string }): Phone;
  phone(number: string): Phone | null;
  close(): Promise<void>;
}

/** A running network with its control API. */
export interface SandboxNetwork extends OpenNetwork {
  /** `http://127.0.0.1:PORT` */
  readonly controlUrl: string;
}

/** Starts the network and its control API on loopback. Rejects when a port is taken. */
export async function startNetwork(options: NetworkOptions): Promise<SandboxNetwork> {
  const { runtime } = options;
  const started: { close(): Promise<void> }[] = [];
  const close = async () => {
    for (const part of started.splice(0).reverse()) await part.close();
  };
  try {
    const media = await startMedia({ runtime, uploadMs: (line) => switchboard.faults.takeUploadMs(line) });
    started.push(media);
    const switchboard: Switchboard = createSwitchboard({ runtime, media });
    const refs = new RefBook(runtime.random);
    const identity = createNoiseIdentity(runtime.clock.now());
    const { port = 0, refresh = true, codeLifetimeMs = CODE_LIFETIME_MS } = options;
    const gate = await openGate({ port, identity, options: { network: switchboard, refs, refresh, codeLifetimeMs } });
    started.push(gate);
    const phones = switchOnPhones(switchboard, refs);
    const parts = { url: gate.url, mediaUrl: media.url, caPem: media.caPem, switchboard, media, ...phones, close };
    const rootKey = Buffer.from(identity.rootPublic).toString("hex");
    const network: OpenNetwork = { ...parts, rootKey };
    const control = openControl(network, options.controlPort ?? 0);
    started.push(control);
    return { ...network, controlUrl: control.url };
  } catch (error) {
    await close();
    throw error;
  }
}

function switchOnPhones(switchboard: Switchboard, refs: RefBook): Pick<OpenNetwork, "addPhone" | "phone"> {
  const { runtime, directory } = switchboard;
  const uplink = createUplink(switchboard, refs);
  const phones = new Map<string, Phone>();
  return {
    addPhone(number, { name = number } = {}) {
      if (phones.has(number)) throw invalid("number", "has a phone already");
      const account: Account = directory.open(number, { name, random: runtime.random });
      const phone = createPhone({ runtime, uplink, number, lid: account.lid, name });
      account.phone = phone;
      phones.set(number, phone);
      return phone;
    },
    phone: (number) => phones.get(number) ?? null,
  };
}

function openControl(network: OpenNetwork, port: number): { url: string; close(): Promise<void> } {
  const stop = new AbortController();
  const options = { hostname: "127.0.0.1", port, signal: stop.signal, onListen: () => {} };
  const server = Deno.serve(options, controlApp(network).fetch);
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    close: async () => {
      // Not gracefully: a client that hangs would keep it open.
      stop.abort();
      await server.finished;
    },
  };
}
