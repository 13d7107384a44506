/** The port `Network` on Baileys: opens connections, and stores what links a line. */
import { Buffer } from "node:buffer";
import { WA_CERT_DETAILS } from "@whiskeysockets/baileys";
import { makeInspector, makeReadOutside } from "../../inspect/inspector.ts";
import { deleteKeys } from "../../store/delete_range.ts";
import { makeEncounters, sweepEncounters } from "../encounters.ts";
import type { Network, NetworkOptions } from "../network.ts";
import { forgetLine, openAuthState, readLink } from "./auth_state.ts";
import { connectLine } from "./connection.ts";
import type { Way } from "./socket.ts";
import { eraseKeys, eraseTraces } from "./erase.ts";
import { forgetEnds, networkKeys, sweepExpired } from "./rows.ts";
import { makeRounds } from "../../base/single_flight.ts";
import { within } from "../../base/within.ts";
import { repairSignatures } from "../../base/xeddsa.ts";
import { makeAlone } from "./incoming/inbox.ts";
import { handOver, leftoversOf } from "./incoming/leftovers.ts";
import { makeCountUnknown } from "./incoming/stanzas.ts";
import { numberIn } from "./jids.ts";
import { keptLidOf, keptPhoneOf } from "./incoming/numbers.ts";
import { eraseReceived, recall } from "./stored_messages.ts";
import { makeMediaHost } from "./media_host.ts";
import { containRejections, silenceLibsignal } from "./repairs/containment.ts";
import { repairTokens } from "./stanza.ts";
import { repairCurve, repairLogins, repairNoise } from "./repairs/handshake.ts";
import { repairDerivation, repairGrowth, repairQueue, repairSenderKeys, repairTrials } from "./repairs/signal.ts";
import { makeWebVersions } from "./web_version.ts";

/**
 * Received messages are on disk within this time, unless a file is slow. A log-out waits no longer: the rest follows
 * from memory.
 */
const HAND_OVER_MS = 2_000;

/** How often every connection is checked for signs of life. */
const WATCH_MS = 5_000;

/**
 * A line that receives nothing, or whose version was refused, is reconnected for that reason at most once in this time.
 * If one attempt does not help, more will not either.
 */
const ONCE_IN_MS = 60 * 60_000;

/** What this process remembers about a line. */
interface LineMemory {
  /** Resolves when the line's last connection has released the keys. The next connection waits for it. */
  ended?: Promise<void>;
  /** The network path of the line's last connection. */
  way?: Promise<Way>;
  /** When the line was last reconnected because it received nothing, and when its version was last refused. */
  complainedAt?: number;
  refusedAt?: number;
}

/**
 * Returns a network at the addresses from the settings. There can be one per process: the library keeps the network's
 * root key, the clock for its certificates, and the console that it prints keys to in global state. Throws if the CA
 * file from the settings can't be read.
 */
export function baileysNetwork(options: NetworkOptions): Network {
  const { runtime, kv, storeOf, seal, whatsapp, openProxy, countUnknown, countSetAside } = options;
  const { clock, confirmed } = runtime;
  prepareLibraries(options);
  const mediaHost = makeMediaHost(whatsapp, clock);
  const encounters = makeEncounters(kv, clock);
  const versions = makeWebVersions({ whatsapp, kv, runtime });
  const lines = new Map<string, LineMemory>();

  function memoryOf(lineId: string): LineMemory {
    let line = lines.get(lineId);
    if (!line) lines.set(lineId, line = {});
    return line;
  }

  /** Whether this has not happened to the line for a while. Records that it has happened now. */
  function isFirstIn(what: "complainedAt" | "refusedAt", lineId: string): boolean {
    const line = memoryOf(lineId);
    const now = clock.now();
    if (now - (line[what] ?? -Infinity) < ONCE_IN_MS) return false;
    line[what] = now;
    return true;
  }

  const shared = {
    runtime,
    seal,
    url: whatsapp.url,
    versions,
    versionRefused(lineId: string): boolean {
      versions.renew();
      return isFirstIn("refusedAt", lineId);
    },
    inspect: makeInspector({ clock }),
    readOutside: makeReadOutside({ clock }),
    alone: makeAlone(clock),
    setAside: countSetAside,
    encounters,
    countUnknown: makeCountUnknown((stanza) => {
      countUnknown(stanza);
      const { tag, type } = stanza;
      if (tag === "stream:error") encounters.note("unacknowledged", type);
      else encounters.note("unhandled", `${tag} ${type}`.trim());
    }, runtime),
    mayComplain: (lineId: string) => isFirstIn("complainedAt", lineId),
    rounds: makeRounds(clock, WATCH_MS),
  };

  const keysOf = async (lineId: string) => (await openAuthState({ kv, seal, lineId })).keys;

  async function wayOf(proxy: string | null): Promise<Way> {
    if (proxy === null) return { proxy: null, mediaHost };
    const opened = await openProxy(proxy);
    return { proxy: opened, mediaHost: makeMediaHost(whatsapp, clock, opened) };
  }

  /** The path of a line without a working one: its files can't be fetched. */
  function noWay(): Pick<Way, "mediaHost"> {
    return { mediaHost: makeMediaHost(whatsapp, clock, { connect: () => Promise.reject(new Error("no way out")) }) };
  }

  return {
    open(open, events) {
      const line = memoryOf(open.lineId);
      const way = wayOf(open.proxy);
      way.catch(() => {}); // the connection reports it
      const life = { ...open, previous: line.ended ?? Promise.resolve(), way };
      const connection = connectLine({ ...shared, kv: storeOf(open.lineId) }, life, events);
      line.way = way;
      line.ended = connection.ended;
      return Promise.resolve(connection);
    },
    isLinked: async (lineId) => await readLink({ kv, seal, lineId }) !== null,
    async forget(lineId, receive) {
      const store = storeOf(lineId);
      const line = memoryOf(lineId);
      await line.ended;
      const { mediaHost } = await line.way?.catch(noWay) ?? noWay();
      const left = await leftoversOf({ ...shared, kv: store, mediaHost, lineId });
      // If the receiver takes nothing, everything stays as it is for the next attempt.
      await within(clock, HAND_OVER_MS, handOver(left, receive));
      await forgetLine(store, lineId);
      await forgetEnds(store, lineId, clock.now());
      lines.delete(lineId);
    },
    recall: (lineId, networkId) => recall({ kv, seal, lineId }, networkId),
    numberOf: async (lineId, lid) => numberIn(await keptPhoneOf(await keysOf(lineId), lid)),
    lidOf: async (lineId, number) => await keptLidOf(await keysOf(lineId), number),
    erase: (lineId, traces, at) => eraseTraces({ kv, seal, lineId }, traces, at),
    eraseKeys: (lineId, traces) => eraseKeys(kv, lineId, traces),
    eraseSent: async (lineId, networkIds) =>
      void await deleteKeys(kv, networkIds.map((networkId) => networkKeys.waSent(lineId, networkId))),
    eraseReceived: (lineId, messages) => eraseReceived({ kv, seal, lineId }, messages),
    webVersion() {
      const last = versions.last();
      return last && { ...last, expiresAt: null };
    },
    sweep: async () => await sweepExpired(kv, confirmed.now()) + await sweepEncounters(kv, confirmed.now()),
  };
}

/** Applies the repairs to Baileys and libsignal that hold for the whole process. */
function prepareLibraries({ runtime: { clock, log }, whatsapp: { rootKey } }: NetworkOptions): void {
  silenceLibsignal();
  containRejections(log);
  repairTrials();
  repairGrowth();
  repairQueue();
  repairDerivation();
  repairCurve();
  repairSignatures();
  repairLogins();
  repairTokens();
  repairSenderKeys();
  repairNoise(clock);
  if (rootKey) WA_CERT_DETAILS.PUBLIC_KEY = Buffer.from(rootKey, "hex");
}
