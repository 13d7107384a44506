/** What every role of a process has: what was opened for it, the metrics, and the services that all roles need. */
import { onDemand } from "../base/single_flight.ts";
import type { Emulation } from "../cloud/emulation.ts";
import type { Place } from "../cluster/place.ts";
import type { Config } from "../config.ts";
import type { DataFolder } from "../data/data_folder.ts";
import { readProxy } from "../egress/proxy_address.ts";
import type { SafeFetch } from "../egress/safe_fetch.ts";
import { chatKeys } from "../chat/rows.ts";
import { makeEventLog } from "../event/event_log.ts";
import { eventKeys } from "../event/rows.ts";
import { type Lookups, makeLookups } from "../line/lookups.ts";
import { makeSessionNames } from "../line/line_row.ts";
import { lineKeys } from "../line/rows.ts";
import { makeMediaLinks } from "../media/signed_link.ts";
import { makeQueuedCount } from "../message/history/counts.ts";
import { messageKeys } from "../message/rows.ts";
import { DiskShares, type SharedMediaStore } from "../media/fair_shares.ts";
import type { SweptMedia } from "../ops/sweep_work.ts";
import { makeMetrics, measuredEvents, measuredStore } from "../ops/metrics.ts";
import type { Runtime } from "../runtime.ts";
import { type Bell, watchChanges } from "../store/bell.ts";
import type { Kv } from "../store/kv.ts";
import type { ChunkedKv } from "../store/layers/chunk.ts";
import { withMemory, withRecent } from "../store/layers/cache.ts";
import type { Network, NetworkOptions } from "../whatsapp/network.ts";

/** The files, and what keeps them tidy. */
export type Media = SharedMediaStore & SweptMedia;

export type Context = ReturnType<typeof makeContext>;

/** Topic on which a process informs others (promise 7): a ring may get lost without harm. */
const FORGET_TOPIC = "forget/";

/** Row families that are read again moments after they were read or written, as a message is processed. */
const MET_ON_THE_WAY = [messageKeys.networkIdsOfLine(""), messageKeys.optedOutChats(""), lineKeys.queuePaused("")]
  .map(([family]) => family!);
const REMEMBERED = {
  // Absences of messages are not cached: `paloma line import` adds messages that may have been read as absent before.
  families: new Set([
    messageKeys.messages()[0]!,
    messageKeys.allTemplateVersions()[0]!,
    chatKeys.places("")[0]!,
    chatKeys.recordsOfLine("")[0]!,
    ...MET_ON_THE_WAY,
  ]),
  absences: new Set(MET_ON_THE_WAY),
  rare: new Set([messageKeys.allChoicesAsked()[0]!, messageKeys.replyCancelsOnLine("")[0]!]),
};

/** Row families of which the newest rows are cached: webhooks and streams follow them. */
const RECENT = new Set([eventKeys.events("")[0]!]);

/** The engine behind the port to the messaging network. */
interface NetworkEngine {
  /** Loads the engine's code in advance; otherwise the first line does. */
  load(): Promise<unknown>;
  open(options: NetworkOptions): Network;
}

/** Resources that are open before a role starts. */
export interface RoleOptions {
  config: Config;
  runtime: Runtime;
  engine: NetworkEngine;
  data: DataFolder;
  bell: Bell;
  media: Media;
  /** Whether anything was committed to the store since the last call; true if that is unknown. */
  hasChanged(): boolean;
  /** Null if the role holds no leases, or another process has the folder. */
  place: Place | null;
  /** Absent unless `/cloud` emulates the official API. */
  emulation?: Emulation | undefined;
}

interface ContextOptions extends RoleOptions {
  /** `http://HOST:PORT`, once it listens. */
  url(): string;
}

export function makeContext(options: ContextOptions) {
  const { config, runtime, engine, data, bell, media, hasChanged, url } = options;
  const metrics = makeMetrics();
  const chunksWaiting = () => media.waiting();
  metrics.gauge("paloma_media_chunks_waiting", "Chunks of files that wait for their account's turn", chunksWaiting);
  const isShared = config.store !== null;
  const measured = measuredStore(data.kv, metrics, runtime.clock);
  const kv: ChunkedKv = isShared
    ? measured
    : withRecent(withMemory(measured, { ...REMEMBERED, clock: runtime.clock }), {
      clock: runtime.clock,
      families: RECENT,
    });
  const lookups = makeLookups(runtime);
  const events = measuredEvents(makeEventLog({ kv, bell, runtime }), metrics);
  const names = makeSessionNames(kv, runtime.clock);
  const safeFetch = safeFetchOnDemand({ config, runtime });
  /** Opens the port to the messaging network, which writes each line's rows through that line's own store. */
  const openNetwork = (storeOf: (lineId: string) => Kv) =>
    engine.open({
      runtime,
      kv,
      storeOf,
      seal: data.seal,
      whatsapp: config.whatsapp,
      openProxy: (proxy) => safeFetch.proxy(readProxy(proxy)),
      countUnknown: (stanza) => metrics.unknownStanzas.inc(stanza),
      countSetAside: () => metrics.setAside.inc(),
    });
  return {
    ...options,
    /** Starts with the worker, its only user. */
    changes: watchChanges({ hasChanged, clock: runtime.clock }),
    metrics,
    kv,
    events,
    diskShares: new DiskShares(),
    links: makeMediaLinks(() => config.publicUrl ?? url(), data.key),
    lookups: isShared ? relayedLookups(lookups, bell) : lookups,
    safeFetch,
    openNetwork,
    queuedCount: makeQueuedCount(kv),
    names,
  };
}

/**
 * Returns lookups whose `forget` invalidates the cached answer in all processes. If rings were lost, all cached answers
 * are dropped, because the rings may have been about any of them.
 */
export function relayedLookups(lookups: Lookups, bell: Pick<Bell, "ring" | "hear">): Lookups {
  bell.hear(FORGET_TOPIC, (topic) => {
    if (topic === FORGET_TOPIC) return lookups.forgetAll();
    const [lineId = "", ...about] = topic.slice(FORGET_TOPIC.length).split(" ");
    lookups.forget(lineId, about.join(" "));
  });
  return {
    ...lookups,
    forget(lineId, about) {
      lookups.forget(lineId, about);
      bell.ring(`${FORGET_TOPIC}${lineId} ${about}`);
    },
  };
}

/** Returns a `SafeFetch` whose code is loaded with its first request. */
function safeFetchOnDemand({ config, runtime }: Pick<ContextOptions, "config" | "runtime">): SafeFetch {
  const egress = onDemand(async () => {
    const [{ makeSafeFetch }, { readAllowList }] = await Promise.all([
      import("../egress/safe_fetch.ts"),
      import("../egress/vetting.ts"),
    ]);
    return makeSafeFetch({ clock: runtime.clock, allow: readAllowList(config.outboundAllow) });
  });
  return {
    fetch: async (request) => await (await egress.need()).fetch(request),
    vet: async (url, schemes) => await (await egress.need()).vet(url, schemes),
    vetProxy: async (address) => await (await egress.need()).vetProxy(address),
    proxy: async (address) => await (await egress.need()).proxy(address),
  };
}
