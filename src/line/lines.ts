/** The lines as the HTTP layer uses them: it writes the wanted state, and sessions bring it about (promise 5). */
import type { Callers } from "../account/callers.ts";
import { readUntil } from "../base/within.ts";
import { EgressError } from "../egress/egress_error.ts";
import { readProxy } from "../egress/proxy_address.ts";
import type { SafeFetch } from "../egress/safe_fetch.ts";
import { invalid, Problem } from "../errors.ts";
import type { Claims } from "../cluster/holder.ts";
import type { Runtime } from "../runtime.ts";
import type { Bell } from "../store/bell.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import type { Seal } from "../store/seal.ts";
import { LineRegister, makeAccountLines, makeSendingLine, type NewEntry } from "./account_lines.ts";
import { ringQueue } from "../message/queue/place.ts";
import {
  DELETED_REASON,
  type Line,
  type LineStatus,
  NOTHING_TO_LINK,
  openedProxy,
  sealedProxy,
  type Wanted,
} from "./line.ts";
import type { SessionNames } from "./line_row.ts";
import { makeLinking } from "./linking.ts";
import { CHANGED_TOPIC, type LiveConnection, type LiveLines, ringWanted } from "./live.ts";
import { lineKeys } from "./rows.ts";

interface NewLineOptions extends Omit<NewEntry, "proxy"> {
  /** `socks5://user:password@host:port`, `http://…` or `https://…`; null or undefined for none. */
  proxy?: string | null;
}

interface LinesDeps {
  kv: Kv;
  runtime: Runtime;
  callers: Pick<Callers, "of">;
  seal: Pick<Seal, "seal" | "open">;
  safeFetch: Pick<SafeFetch, "vetProxy">;
  bell: Bell;
  /** Null on data that only this process uses. */
  claims: Claims | null;
  live: LiveLines;
  names: Pick<SessionNames, "changed">;
}

/** How long the answer waits at most. */
const REACHED_WITHIN_MS = 5_000;

/** The statuses in which a wanted state is reached. A deletion is complete when the row is gone. */
const LEADS_TO: Readonly<Record<Wanted, readonly LineStatus[]>> = {
  connected: ["connected", "qr", "pairing"],
  paused: ["disconnected", "logged_out"],
  exporting: ["disconnected", "logged_out"],
  logged_out: ["logged_out"],
  exported: ["logged_out"],
  deleted: [],
};

/** The fields of the last record of a deleted line. */
const DELETED = { ...NOTHING_TO_LINK, status: "logged_out", linked: false, reason: DELETED_REASON } as const;

export function makeLines({ kv, runtime, callers, bell, claims, live, seal, safeFetch, names }: LinesDeps) {
  const lines = makeAccountLines(kv);
  const { row, used } = lines;
  const sending = makeSendingLine(lines);
  const register = new LineRegister({ kv, runtime, callers, claims });

  /** Resolves to the line once `done` is true of it, it is gone, or a few seconds have passed. */
  async function until(last: Line, done: (now: Line) => boolean): Promise<Line> {
    let line = last;
    const read = async () => {
      const { value } = await kv.get(lineKeys.line(last.id));
      line = value ?? line;
      return value;
    };
    const now = await readUntil(read, (row) => row === null || done(row), {
      clock: runtime.clock,
      withinMs: REACHED_WITHIN_MS,
      watch: (changed) => bell.hear(CHANGED_TOPIC + last.id, changed),
    });
    return now ?? { ...line, ...DELETED };
  }

  /** Checks and seals a proxy's address. Throws Problem validation_failed. */
  async function proxyOf(text: string | null): Promise<Line["proxy"]> {
    try {
      if (text !== null) await safeFetch.vetProxy(readProxy(text));
      return sealedProxy(text, seal);
    } catch (error) {
      throw error instanceof EgressError ? invalid("proxy", error.message) : error;
    }
  }

  /** Builds the commit that rewrites the line's row. */
  async function rewritten(accountId: string, lineId: string, next: (line: Line) => Line) {
    const slot = await row(accountId, lineId);
    const result = next(slot.value);
    sending.changed(lineId);
    return { change: new Change().check(slot).set(lineKeys.line(lineId), result), result };
  }

  async function bringAbout(accountId: string, lineId: string, wanted: Wanted): Promise<Line> {
    const next = () => rewritten(accountId, lineId, (line) => ({ ...line, wanted, generation: line.generation + 1 }));
    const written = wanted === "deleted" ? await register.remove(accountId, next) : await retryOnConflict(kv, next);
    ringWanted(bell, written);
    return await until(written, (now) => isReached(now, written));
  }

  return {
    list: lines.list,
    get: lines.get,
    ...sending,
    ...makeLinking({ lines, live, until, connect: (accountId, lineId) => bringAbout(accountId, lineId, "connected") }),

    /** Returns the line's health, asking its connection if there is one. Throws Problem not_found, NetworkTimeout. */
    async health(accountId: string, lineId: string) {
      const { value: { restriction } } = await row(accountId, lineId);
      return { ...await live.health(lineId), restriction: restriction ?? null };
    },

    /** Creates a line. Throws Problem session_limit_reached if the plan allows no more (checked in the same commit). */
    async create(accountId: string, { proxy = null, ...entry }: NewLineOptions): Promise<Line> {
      const line = await register.create(accountId, { ...entry, proxy: await proxyOf(proxy) });
      ringWanted(bell, line);
      return line;
    },

    /**
     * Writes the wanted state and waits up to a few seconds for it, so that a client that disconnects a line sees
     * `disconnected` in the answer. Resolves to the line as it is then; for a deleted line, to its last record,
     * unlinked.
     */
    async want(accountId: string, lineId: string, wanted: Wanted): Promise<Line> {
      // Read first: the deletion of a line removes this row too.
      const before = (await kv.get(lineKeys.lineUsed(lineId))).value;
      const line = await bringAbout(accountId, lineId, wanted);
      return await used({ ...line, lastUsed: before ?? line.lastUsed });
    },

    /** Pauses or resumes the line's queue; the line stays connected. Throws Problem not_found. */
    async pauseQueue(accountId: string, lineId: string, paused: boolean): Promise<Line> {
      const { value: line } = await row(accountId, lineId);
      const at = lineKeys.queuePaused(lineId);
      await kv.commit(paused ? new Change().set(at, true) : new Change().delete(at));
      ringQueue(bell, lineId);
      return await used(line);
    },

    /**
     * Changes the name, the proxy, or the phone that links by a code (null: by QR); undefined fields stay as they are. A
     * line that is wanted connected reconnects through the new proxy, and links in the new way. Throws Problem not_found, validation_failed.
     */
    async update(
      accountId: string,
      lineId: string,
      { name, proxy, pairingPhone }: { name?: string; proxy?: string | null; pairingPhone?: string | null },
    ): Promise<Line> {
      const asked = proxy === undefined ? null : { proxy: await proxyOf(proxy) };
      const next = (line: Line): Line => {
        const another = openedProxy(line, seal) === proxy ? null : asked;
        const byAnother = pairingPhone !== undefined && pairingPhone !== line.pairingPhone;
        const comesUpAnew = (another !== null || byAnother) && line.wanted === "connected";
        return {
          ...line,
          ...another,
          ...(name === undefined ? {} : { name }),
          ...(pairingPhone === undefined ? {} : { pairingPhone }),
          generation: line.generation + (comesUpAnew ? 1 : 0),
        };
      };
      const line = await retryOnConflict(kv, () => rewritten(accountId, lineId, next));
      names.changed(lineId);
      if (line.observedGeneration === line.generation) return await used(line);
      ringWanted(bell, line);
      return await used(await until(line, (now) => isReached(now, line)));
    },

    /**
     * Returns the line's live connection. Throws Problem not_found, session_not_connected. Calls of the connection
     * reject with NetworkRefusal, NetworkTimeout.
     */
    async connection(accountId: string, lineId: string): Promise<LiveConnection> {
      const { value: line } = await row(accountId, lineId);
      const connection = live.connection(lineId);
      if (line.status === "connected" && connection) return connection;
      throw new Problem("session_not_connected", `The session is ${line.status}; this needs it to be connected.`);
    },
  };
}

/**
 * Returns whether the line has reached the state that was wanted in that generation, or has halted on the way there.
 */
function isReached(now: Line, { generation, wanted }: Line): boolean {
  return now.observedGeneration >= generation && (LEADS_TO[wanted].includes(now.status) || now.halted);
}
