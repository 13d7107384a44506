/** The port `Network` on Baileys: opens connections and keeps what links a line between them. */
import { Buffer } from "node:buffer";
import { WA_CERT_DETAILS } from "@whiskeysockets/baileys";
import type { WhatsAppConfig } from "../../config.ts";
import { makeInspector } from "../../inspect/inspector.ts";
import type { Runtime } from "../../runtime.ts";
import type { Kv } from "../../store/kv.ts";
import type { Seal } from "../../store/seal.ts";
import type { ConnectionEvents, Network } from "../connection.ts";
import { forgetLine, isLinked, readCreds } from "./auth_state.ts";
import { connectLine } from "./connection.ts";
import { sweepExpired } from "./expiry.ts";
import { within } from "../../base/within.ts";
import { handOver, leftoversOf } from "./incoming/leftovers.ts";
import { type CountStray, makeCountStray } from "./incoming/strays.ts";
import { recall } from "./incoming/originals.ts";
import { makeMediaHost } from "./media_host.ts";
import { silenceLibsignal } from "./repairs/quiet_libsignal.ts";
import { repairCurve } from "./repairs/curve.ts";
import { repairLibsignal } from "./repairs/libsignal.ts";
import { repairNoise } from "./repairs/noise.ts";
import { containStrayRejections } from "./repairs/stray_rejections.ts";
import { webVersion } from "./web_version.ts";

/** What was received is on disk in this time, a slow file aside: for that no log-out is held up, it follows from memory. */
const HAND_OVER_MS = 2_000;

export interface BaileysNetworkOptions {
  runtime: Runtime;
  kv: Kv;
  seal: Seal;
  whatsapp: WhatsAppConfig;
  /** Counts a stanza that nobody handles, by tag and type. */
  countStray?: CountStray;
  /** False leaves the refresh stage of linking to the library, which fails there: for the test that shows it. */
  refreshHandled?: boolean;
}

/**
 * A network at the addresses of the settings. One for a process: the library keeps the network's root key, the clock of
 * its certificates, and the console that it prints keys to, in global places. Throws when the CA file of the settings
 * can't be read.
 */
export function baileysNetwork(options: BaileysNetworkOptions): Network {
  const { runtime, kv, seal, whatsapp, countStray = () => {}, refreshHandled = true } = options;
  silenceLibsignal();
  repairLibsignal();
  repairCurve();
  repairNoise(runtime.clock);
  containStrayRejections(runtime.log);
  if (whatsapp.rootKey) WA_CERT_DETAILS.PUBLIC_KEY = Buffer.from(whatsapp.rootKey, "hex");
  const shared = {
    runtime,
    kv,
    seal,
    url: whatsapp.url,
    version: webVersion(whatsapp, runtime),
    mediaHost: makeMediaHost(whatsapp, runtime.clock),
    inspect: makeInspector({ clock: runtime.clock }),
    refreshHandled,
    countStray: makeCountStray(countStray, runtime.log),
  };
  /** When each line's last connection let go of the keys; a new one waits for it. */
  const ends = new Map<string, Promise<void>>();
  /** Who takes each line's messages; known until the line is forgotten. */
  const receivers = new Map<string, ConnectionEvents["message"]>();

  return {
    open(open, events) {
      const previous = ends.get(open.lineId) ?? Promise.resolve();
      receivers.set(open.lineId, (message) => events.message(message));
      const connection = connectLine(shared, { ...open, previous }, events);
      const { ended } = connection;
      ends.set(open.lineId, ended);
      ended.then(() => ends.get(open.lineId) === ended && ends.delete(open.lineId));
      return connection;
    },
    async isLinked(lineId) {
      const creds = await readCreds({ kv, seal, lineId });
      return creds !== null && isLinked(creds);
    },
    async forget(lineId) {
      await ends.get(lineId);
      const receive = receivers.get(lineId);
      if (receive) {
        const left = await leftoversOf({ ...shared, lineId });
        // A receiver that takes nothing leaves all as it is, for the next attempt.
        await within(runtime.clock, HAND_OVER_MS, handOver(left, receive));
      }
      await forgetLine(kv, lineId);
      receivers.delete(lineId);
    },
    recall: (lineId, networkId) => recall({ kv, seal, lineId }, networkId),
    sweep: () => sweepExpired(kv, runtime.clock.now()),
  };
}
