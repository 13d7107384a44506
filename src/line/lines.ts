/** The lines as the HTTP layer uses them: it writes the wanted state, and sessions bring it about (promise 5). */
import type { Accounts } from "../account/accounts.ts";
import { EgressError } from "../egress/egress_error.ts";
import { readProxy } from "../egress/proxy_address.ts";
import type { SafeFetch } from "../egress/safe_fetch.ts";
import { invalid, Problem } from "../errors.ts";
import type { Runtime } from "../runtime.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import type { Seal } from "../store/seal.ts";
import { type AccountLines, makeAccountLines } from "./account_lines.ts";
import { type Line, openedProxy, sealedProxy, type Wanted } from "./line.ts";
import { type Linking, makeLinking } from "./linking.ts";
import type { LiveConnection, LiveLines, Vitals } from "./live.ts";
import { isReached, makeUntil } from "./reached.ts";
import { LineRegister } from "./register.ts";
import type { SessionNames } from "./line_row.ts";
import { lineKeys } from "./rows.ts";
import { makeSendingLine, type SendingLine } from "./sending_line.ts";

export interface Lines extends Pick<AccountLines, "list" | "get">, SendingLine, Linking {
  /** Creates a line. Throws Problem session_limit_reached if the plan allows no more (checked in the same commit). */
  create(accountId: string, options: NewLineOptions): Promise<Line>;
  /**
   * Writes the wanted state and waits up to a few seconds for it, so that a client that disconnects a line sees
   * `disconnected` in the answer. Resolves to the line as it is then; for a deleted line, to its last record, unlinked.
   */
  want(accountId: string, lineId: string, wanted: Wanted): Promise<Line>;
  /** Pauses or resumes the line's queue; the line stays connected. Throws Problem not_found. */
  pauseQueue(accountId: string, lineId: string, paused: boolean): Promise<Line>;
  /**
   * Changes the name or the proxy; undefined fields stay as they are. A line that is wanted connected reconnects
   * through the new proxy. Throws Problem not_found, validation_failed.
   */
  update(accountId: string, lineId: string, changes: { name?: string; proxy?: string | null }): Promise<Line>;
  /** Returns the line's vitals, asking its connection if there is one. Throws Problem not_found, NetworkTimeout. */
  health(accountId: string, lineId: string): Promise<Vitals & Pick<Line, "restriction">>;
  /**
   * Returns the line's live connection. Throws Problem not_found, session_not_connected. Calls of the connection reject
   * with NetworkRefusal, NetworkTimeout.
   */
  connection(accountId: string, lineId: string): Promise<LiveConnection>;
}

interface NewLineOptions {
  name: string;
  pairingPhone: string | null;
  /** `socks5://user:password@host:port`, `http://…` or `https://…`; null or undefined for none. */
  proxy?: string | null;
  /** Adds what must be written in the same commit as the line. Called again for each retry of the commit. */
  commitWith?: (change: Change, line: Line) => void;
}

interface LinesDeps {
  kv: Kv;
  runtime: Runtime;
  accounts: Pick<Accounts, "caller">;
  seal: Pick<Seal, "seal" | "open">;
  safeFetch: Pick<SafeFetch, "vetProxy">;
  live: LiveLines;
  names: Pick<SessionNames, "changed">;
}

export function makeLines({ kv, runtime, accounts, live, seal, safeFetch, names }: LinesDeps): Lines {
  const lines = makeAccountLines(kv);
  const { row, used } = lines;
  const sending = makeSendingLine(lines);
  const until = makeUntil({ kv, clock: runtime.clock, live });
  const register = new LineRegister({ kv, runtime, accounts, offer: (change, lineId) => live.offer(change, lineId) });

  /** Checks and seals a proxy's address. Throws Problem validation_failed. */
  async function proxyOf(text: string | null): Promise<Line["proxy"]> {
    try {
      if (text !== null) await safeFetch.vetProxy(readProxy(text));
      return sealedProxy(text, seal);
    } catch (error) {
      throw error instanceof EgressError ? invalid("proxy", error.message) : error;
    }
  }

  /** Builds the commit that begins the next generation. */
  async function nextGeneration(accountId: string, lineId: string, wanted: Wanted) {
    const slot = await row(accountId, lineId);
    const result: Line = { ...slot.value, wanted, generation: slot.value.generation + 1 };
    sending.changed(lineId);
    return { change: new Change().check(slot).set(lineKeys.line(lineId), result), result };
  }

  async function bringAbout(accountId: string, lineId: string, wanted: Wanted): Promise<Line> {
    const next = () => nextGeneration(accountId, lineId, wanted);
    const written = wanted === "deleted" ? await register.remove(accountId, next) : await retryOnConflict(kv, next);
    live.reconcile(written);
    return await until(written, (now) => isReached(now, written));
  }

  /** Returns the live connection of a line that is connected. Throws Problem not_found, session_not_connected. */
  async function connectionOf(accountId: string, lineId: string): Promise<LiveConnection> {
    const { value: line } = await row(accountId, lineId);
    const connection = live.connection(lineId);
    if (line.status === "connected" && connection) return connection;
    throw new Problem("session_not_connected", `The session is ${line.status}; this needs it to be connected.`);
  }

  return {
    list: lines.list,
    get: lines.get,
    ...sending,
    ...makeLinking({ lines, live, until, connect: (accountId, lineId) => bringAbout(accountId, lineId, "connected") }),

    async health(accountId, lineId) {
      const { value: { restriction } } = await row(accountId, lineId);
      return { ...await live.vitals(lineId), restriction: restriction ?? null };
    },

    async create(accountId, { name, pairingPhone, proxy: address = null, commitWith }) {
      const proxy = await proxyOf(address);
      const line = await register.create(accountId, { name, pairingPhone, proxy, commitWith });
      live.reconcile(line);
      return line;
    },

    async want(accountId, lineId, wanted) {
      // Read first: the deletion of a line removes this row too.
      const before = (await kv.get(lineKeys.lineUsed(lineId))).value;
      const line = await bringAbout(accountId, lineId, wanted);
      return await used({ ...line, lastUsed: before ?? line.lastUsed });
    },

    async pauseQueue(accountId, lineId, paused) {
      const { value: line } = await row(accountId, lineId);
      const at = lineKeys.queuePaused(lineId);
      await kv.commit(paused ? new Change().set(at, true) : new Change().delete(at));
      live.queueChanged(lineId);
      return await used(line);
    },

    async update(accountId, lineId, { name, proxy }) {
      const asked = proxy === undefined ? null : { proxy: await proxyOf(proxy) };
      const line = await retryOnConflict<Line>(kv, async () => {
        const slot = await row(accountId, lineId);
        const another = openedProxy(slot.value, seal) === proxy ? null : asked;
        const comesUpAnew = another !== null && slot.value.wanted === "connected";
        const line: Line = {
          ...slot.value,
          ...another,
          ...(name === undefined ? {} : { name }),
          generation: slot.value.generation + (comesUpAnew ? 1 : 0),
        };
        sending.changed(lineId);
        return { change: new Change().check(slot).set(lineKeys.line(lineId), line), result: line };
      });
      names.changed(lineId);
      if (line.observedGeneration === line.generation) return await used(line);
      live.reconcile(line);
      return await used(await until(line, (now) => isReached(now, line)));
    },

    connection: connectionOf,
  };
}
