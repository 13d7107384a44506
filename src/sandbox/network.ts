/**
 * The simulated WhatsApp network, put together: a server that speaks the protocol to any client of it, over a real
 * WebSocket and TLS, with phones in this process. Its state lives in memory and outlives a gateway that is killed.
 */
import { Buffer } from "node:buffer";
import type { Phone } from "./device.ts";
import type { Account } from "./directory.ts";
import { openGate } from "./gate.ts";
import { type MediaHost, startMedia } from "./media.ts";
import { createNoiseIdentity } from "./noise.ts";
import { createPhone } from "./phone/phone.ts";
import { RefBook } from "./ref_book.ts";
import { createSwitchboard, type Switchboard } from "./switchboard.ts";
import { createUplink } from "./uplink.ts";
import { Problem } from "../errors.ts";
import type { Runtime } from "../runtime.ts";

/** As on the real network: the code that a companion shows is good for three minutes. */
const CODE_LIFETIME_MS = 180_000;

export interface NetworkOptions {
  runtime: Runtime;
  /** Port of the WebSocket; 0, the default, takes a free one. */
  port?: number;
  /** The refresh stage of linking (`companion_reg_refresh`); on unless false. */
  refresh?: boolean;
  /** How long a pairing code is good before the companion is told `refresh_code`. */
  codeLifetimeMs?: number;
}

/** A running network. */
export interface SimulatedNetwork {
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

/** Starts the network's doors on loopback; without a control API (see `control.ts`). */
export async function startNetwork(options: NetworkOptions): Promise<SimulatedNetwork> {
  const { runtime } = options;
  const media = await startMedia({ runtime });
  const switchboard = createSwitchboard({ runtime, media });
  const refs = new RefBook(runtime.random);
  const uplink = createUplink(switchboard, refs);
  const identity = createNoiseIdentity();
  const phones = new Map<string, Phone>();
  const gate = await openGate({
    port: options.port ?? 0,
    identity,
    options: {
      network: switchboard,
      refs,
      refresh: options.refresh ?? true,
      codeLifetimeMs: options.codeLifetimeMs ?? CODE_LIFETIME_MS,
    },
  }).catch(async (error) => {
    await media.close();
    throw error;
  });

  return {
    url: gate.url,
    rootKey: Buffer.from(identity.rootPublic).toString("hex"),
    mediaUrl: media.url,
    caPem: media.caPem,
    switchboard,
    media,
    addPhone(number, { name = number } = {}) {
      if (phones.has(number)) throw new Problem("validation_failed", `number: ${number} has a phone already`);
      const account: Account = switchboard.directory.open(number, { name, random: runtime.random });
      const phone = createPhone({ runtime, uplink, number, lid: account.lid, name });
      account.phone = phone;
      phones.set(number, phone);
      return phone;
    },
    phone: (number) => phones.get(number) ?? null,
    close: async () => {
      await gate.close();
      await media.close();
    },
  };
}
