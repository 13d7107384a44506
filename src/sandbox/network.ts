/**
 * Assembles the simulated WhatsApp network: a server that speaks the protocol over a real WebSocket and TLS with any
 * client, and phones in this process. Its state is in memory and outlives a gateway that is killed.
 */
import { serveLocally } from "../base/listening.ts";
import { repairSignatures } from "../base/xeddsa.ts";
import { invalid } from "../errors.ts";
import type { Clock, Runtime } from "../runtime.ts";
import { controlApp } from "./control/app.ts";
import type { ControlledNetwork } from "./control/request.ts";
import { startMedia } from "./media/host.ts";
import { Phone } from "./phone/phone.ts";
import { openGate } from "./server/gate.ts";
import { RefBook } from "./server/linking/ref_book.ts";
import type { RegistrationOptions } from "./server/linking/registration.ts";
import { createNoiseIdentity } from "./server/noise.ts";
import { createUplink } from "./server/uplink.ts";
import type { Account } from "./world/directory.ts";
import { createSwitchboard, type Switchboard } from "./world/switchboard.ts";
import type { PhoneUplink } from "./world/uplink.ts";

/** Three minutes, as on the real network. */
const CODE_LIFETIME_MS = 180_000;
/** As long as WhatsApp Web gives for a signature. */
const PASSKEY_LIFETIME_MS = 600_000;

interface NetworkOptions extends Partial<Pick<RegistrationOptions, "codeLifetimeMs" | "passkeyLifetimeMs">> {
  runtime: Runtime;
  /** Port of the WebSocket; 0, the default, chooses a free one. */
  port?: number;
  /** Port of the control API; 0, the default, chooses a free one. */
  controlPort?: number;
  /** Whether linking includes the refresh stage (`companion_reg_refresh`); true by default. */
  refresh?: boolean;
}

/** A running network with its control API. */
export interface SandboxNetwork extends ControlledNetwork {
  /** `http://127.0.0.1:PORT` */
  readonly controlUrl: string;
  close(): Promise<void>;
}

/** Starts the network and its control API on loopback. Rejects if a port is in use. */
export async function startNetwork(options: NetworkOptions): Promise<SandboxNetwork> {
  repairSignatures();
  const end = new AbortController();
  const runtime = { ...options.runtime, clock: clockUntil(end.signal, options.runtime.clock) };
  const phones = new Map<string, Phone>();
  const started: { close(): Promise<void> }[] = [];
  const close = async () => {
    for (const part of started.splice(0).reverse()) await part.close();
    end.abort();
    // Requests in progress fail now.
    for (const phone of phones.values()) await phone.idle();
  };
  try {
    const media = await startMedia({ runtime, taken: (line) => switchboard.faults.upload(line) });
    started.push(media);
    const switchboard: Switchboard = createSwitchboard({ runtime, media });
    const refs = new RefBook(runtime.random);
    const identity = createNoiseIdentity(runtime.clock.now());
    const { port = 0, refresh = true } = options;
    const { codeLifetimeMs = CODE_LIFETIME_MS, passkeyLifetimeMs = PASSKEY_LIFETIME_MS } = options;
    const registration = { network: switchboard, refs, refresh, codeLifetimeMs, passkeyLifetimeMs };
    const gate = await openGate({ port, identity, options: registration });
    started.push(gate);
    const telephony = switchOnPhones(phones, createUplink(switchboard, refs), switchboard);
    const network: ControlledNetwork = {
      url: gate.url,
      rootKey: identity.rootPublic.toHex(),
      mediaUrl: media.url,
      caPem: media.caPem,
      switchboard,
      media,
      templates: new Map(),
      ...telephony,
    };
    const control = serveLocally({ port: options.controlPort }, controlApp(network).fetch);
    started.push(control);
    return { ...network, controlUrl: `http://${control.address}`, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function switchOnPhones(
  phones: Map<string, Phone>,
  uplink: PhoneUplink,
  { runtime, directory }: Switchboard,
): Pick<ControlledNetwork, "addPhone" | "phone"> {
  return {
    addPhone(
      number,
      { name = number, passkey, passkeyOptions, business, username, usernamePin = null, hidesNumber = false } = {},
    ) {
      if (phones.has(number)) throw invalid("number", "already has a phone");
      if (username && directory.named(username)) throw invalid("username", "is taken");
      const account: Account = directory.open(number, { name, random: runtime.random });
      const phone = new Phone({ runtime, uplink, number, lid: account.lid, name, passkey });
      account.phone = phone;
      account.business = business ?? null;
      account.username = username ? { name: username, pin: usernamePin } : null;
      account.hidesNumber = hidesNumber;
      if (account.passkey && passkeyOptions) account.passkey.options = passkeyOptions;
      phones.set(number, phone);
      return phone;
    },
    phone: (number) => phones.get(number) ?? null,
  };
}

/** Wraps a clock so that no timer fires once the signal has aborted. */
function clockUntil(signal: AbortSignal, clock: Clock): Clock {
  const waiting = new Set<() => void>();
  signal.addEventListener("abort", () => waiting.forEach((cancel) => cancel()), { once: true });
  return {
    now: () => clock.now(),
    after(delayMs, run) {
      if (signal.aborted) return () => {};
      const over = () => {
        waiting.delete(over);
        cancel();
      };
      const cancel = clock.after(delayMs, () => {
        over();
        run();
      });
      waiting.add(over);
      return over;
    },
  };
}
