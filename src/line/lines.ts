/** The lines as the HTTP floor uses them: it writes what is wanted, sessions bring it about (promise 5). */
import type { Accounts } from "../account/account.ts";
import { EgressError } from "../egress/egress_error.ts";
import { readProxy, shownProxy } from "../egress/proxy.ts";
import { PROXY_SCHEMES, type SafeFetch, urlOf } from "../egress/safe_fetch.ts";
import { invalid, notFound, Problem } from "../errors.ts";
import type { Seal } from "../store/seal.ts";
import { KeyedQueue } from "../base/keyed_queue.ts";
import { LineQueue } from "../message/queue.ts";
import { type Runtime, sleep } from "../runtime.ts";
import type { NewChats } from "./new_chats.ts";
import { lineKeys } from "./rows.ts";
import { Holds, type WaitsFor } from "./waiting.ts";
import { Change, type Kv, retryOnConflict, type Row } from "../store/kv.ts";
import { shareReads } from "../store/layers/shared_reads.ts";
import {
  type Connection,
  type PasskeyAssertion,
  PasskeyNotRequested,
  PasskeyRefused,
  type PasskeyRequest,
  type Restriction,
} from "../whatsapp/connection.ts";
import { DELETED_REASON, type Line, type LineStatus, newLine, NOTHING_TO_LINK, type Wanted } from "./line.ts";
import { qrDataUrl } from "./line_row.ts";
import type { LiveConnection, LiveLines, Vitals } from "./live.ts";

export interface Lines {
  /** Throws Problem session_limit_reached when the plan allows no more (checked inside the commit). */
  create(accountId: string, options: NewLineOptions): Promise<Line>;
  /** Oldest first. Deleted lines do not appear. */
  list(accountId: string): Promise<Line[]>;
  /** Throws Problem not_found, also for another account's line. */
  get(accountId: string, lineId: string): Promise<Line>;
  /**
   * What the owner needs to link the line now; asking begins a new round when the last one ran out unused. `qr` is a data
   * URL of a PNG. Throws Problem not_found.
   */
  linking(accountId: string, lineId: string): Promise<Linking>;
  /**
   * Resolves to the line after what is wanted was written and, for at most some seconds, awaited: a client that reads the
   * answer of `disconnect` sees `disconnected`. Deleting resolves to the last record, unlinked.
   */
  want(accountId: string, lineId: string, wanted: Wanted): Promise<Line>;
  /**
   * The line a send goes out on. Given: that one, if it is linked; offline is fine, the message waits. Not given: the
   * oldest connected, else the oldest that is linked and comes back by itself, so that a short drop loses no send.
   * Its row may be remembered, so whoever accepts a send on it checks the row, and says when it had changed (`changed`).
   * Throws session_not_connected, no_connected_session.
   */
  forSending(accountId: string, lineId: string | null): Promise<Row<Line>>;
  /** Holds what waits on the line, or lets it go on; the line stays connected. Throws Problem not_found. */
  pauseQueue(accountId: string, lineId: string, paused: boolean): Promise<Line>;
  /** The row of the line is not any more what it was. */
  changed(lineId: string): void;
  /**
   * Changes the name, or the way out; a line that is wanted connected then comes up on the new one. What is undefined
   * stays. Throws Problem not_found, validation_failed.
   */
  update(accountId: string, lineId: string, changes: { name?: string; proxy?: string | null }): Promise<Line>;
  /** Signs of life; asks the network where the line is connected. Throws not_found. */
  health(accountId: string, lineId: string): Promise<LineHealth>;
  /** What the account's passkey is asked for now. Throws not_found when it is not. */
  passkey(accountId: string, lineId: string): Promise<PasskeyRequest>;
  /**
   * Resolves to the line once the network took the signed challenge. Throws not_found, PasskeyNotRequested,
   * PasskeyRefused, NetworkTimeout.
   */
  signPasskey(accountId: string, lineId: string, assertion: PasskeyAssertion): Promise<Line>;
  /** The owner saw the same code on the phone. As signPasskey. */
  confirmPasskey(accountId: string, lineId: string): Promise<Line>;
  /** Throws session_not_connected, NetworkRefusal, NetworkTimeout. */
  connection(accountId: string, lineId: string): Promise<LiveConnection>;
}

interface LineHealth extends Vitals {
  restriction: Restriction | null;
  /** New chats that the plan lets the line start today; null: as many as it likes. */
  newChats: NewChats | null;
  /** `waitsFor`: what holds all of it beside its turn. */
  queue: { waiting: number; oldestSeconds: number; waitsFor: WaitsFor | null };
}

interface NewLineOptions {
  name: string;
  pairingPhone: string | null;
  /** `socks5://user:password@host:port`, `http://…`, `https://…`; none if left out. */
  proxy?: string | null;
  /** Adds what is to be written with the line or not at all; called anew for each try. */
  commitWith?: (change: Change, line: Line) => void;
}

/** How far linking is: the spec's "Session QR / pairing result". */
interface Linking {
  status: LineStatus;
  qr: string | null;
  pairingCode: string | null;
}

interface LinesDeps {
  kv: Kv;
  runtime: Runtime;
  accounts: Pick<Accounts, "caller">;
  seal: Pick<Seal, "seal">;
  safeFetch: Pick<SafeFetch, "vet">;
  live: LiveLines;
}

/** What is to be said of a line when its row is gone. */
const DELETED = { ...NOTHING_TO_LINK, status: "logged_out", linked: false, reason: DELETED_REASON } as const;

/** How long an answer waits for what is wanted. */
const RECONCILED_WITHIN_MS = 5_000;
/** So often it looks meanwhile, should a ring have been lost. */
const LOOK_EVERY_MS = 1_000;
/** Lines read at a time when the first connected one is looked for. */
const READ_AT_ONCE = 20;

/** Where what is wanted leads; a client's answer waits for it. Deleted is when the row is gone. */
const REACHED: Readonly<Record<Wanted, readonly LineStatus[]>> = {
  connected: ["connected", "qr", "pairing"],
  paused: ["disconnected", "logged_out"],
  logged_out: ["logged_out"],
  deleted: [],
};

export function makeLines({ kv, runtime, accounts, live, seal, safeFetch }: LinesDeps): Lines {
  // Concurrent requests for a line share one read of it, which is as fresh as one each.
  const sharedGet = shareReads(kv);
  /** Lines as they were last read for sending. */
  const sendable = new Map<string, Row<Line>>();
  /** Changes of an account's count of lines: at once, each try would let one through and all others fail. */
  const counting = new KeyedQueue();

  async function row(accountId: string, lineId: string): Promise<Row<Line>> {
    const slot = await sharedGet(lineKeys.line(lineId));
    if (slot.value?.accountId !== accountId || slot.value.wanted === "deleted") throw notFound("session");
    return slot as Row<Line>;
  }

  /** With `lastUsed` as its own row has it. */
  async function used(line: Line): Promise<Line> {
    return { ...line, lastUsed: (await kv.get(lineKeys.lineUsed(line.id))).value ?? line.lastUsed };
  }

  async function* linesOf(accountId: string): AsyncIterable<Line> {
    const ids: string[] = [];
    const read = async () => {
      const slots = await kv.getMany(ids.splice(0).map((id) => lineKeys.line(id)));
      return slots.flatMap(({ value }) => value && value.wanted !== "deleted" ? value : []);
    };
    for await (const { value } of kv.list({ prefix: lineKeys.linesOfAccount(accountId) })) {
      if (ids.push(value) === READ_AT_ONCE) yield* await read();
    }
    yield* await read();
  }

  async function defaultLine(accountId: string): Promise<string> {
    let back: string | null = null;
    for await (const line of linesOf(accountId)) {
      if (line.status === "connected" && line.wanted === "connected") return line.id;
      if (line.linked && line.wanted === "connected" && !line.halted) back ??= line.id;
    }
    if (back !== null) return back;
    throw new Problem("no_connected_session", "The account has no connected session to send from.");
  }

  /** Throws Problem validation_failed. */
  async function proxyOf(text: string | null): Promise<Line["proxy"]> {
    if (text === null) return null;
    try {
      const address = readProxy(text);
      await safeFetch.vet(urlOf(address).href, PROXY_SCHEMES);
      return { sealed: seal.seal(new TextEncoder().encode(text)), shown: shownProxy(address) };
    } catch (error) {
      throw error instanceof EgressError ? invalid("proxy", error.message) : error;
    }
  }

  /** The commit that makes a line. Throws Problem session_limit_reached. */
  async function creationOf(
    accountId: string,
    { name, pairingPhone, proxy, commitWith }: Omit<NewLineOptions, "proxy"> & Pick<Line, "proxy">,
  ) {
    const caller = await accounts.caller(accountId);
    if (!caller) throw notFound("account");
    const count = await kv.get(lineKeys.lineCount(accountId));
    if ((count.value ?? 0) >= caller.plan.sessions) {
      const allowed = caller.plan.sessions;
      throw new Problem(
        "session_limit_reached",
        `The plan "${caller.plan.name}" allows ${allowed} ${allowed === 1 ? "session" : "sessions"}.`,
      );
    }
    const createdAt = runtime.clock.now();
    const line = newLine({ id: runtime.ids.next("ses"), accountId, name, pairingPhone, proxy, createdAt });
    const change = new Change().check(count).set(lineKeys.lineCount(accountId), (count.value ?? 0) + 1)
      .checkAbsent(lineKeys.line(line.id)).set(lineKeys.line(line.id), line)
      .set(lineKeys.lineOfAccount(accountId, createdAt, line.id), line.id);
    live.offer(change, line.id);
    commitWith?.(change, line);
    return { change, result: line };
  }

  /** Writes the next generation. Deleting takes the line out of the account's list and count at once. */
  function write(accountId: string, lineId: string, wanted: Wanted): Promise<Line> {
    return retryOnConflict(kv, async () => {
      const slot = await row(accountId, lineId);
      const line: Line = { ...slot.value, wanted, generation: slot.value.generation + 1 };
      const change = new Change().check(slot).set(lineKeys.line(lineId), line);
      sendable.delete(lineId);
      if (wanted === "deleted") {
        const count = await kv.get(lineKeys.lineCount(accountId));
        change.check(count).set(lineKeys.lineCount(accountId), Math.max(0, (count.value ?? 0) - 1));
        change.delete(lineKeys.lineOfAccount(accountId, line.createdAt, lineId));
      }
      return { change, result: line };
    });
  }

  /** Waits until `done` says so of the line, or the time is over; resolves to the line as it then is. */
  async function until(lineId: string, last: Line, done: (line: Line) => boolean): Promise<Line> {
    const over = runtime.clock.now() + RECONCILED_WITHIN_MS;
    for (let line = last;;) {
      const changed = new AbortController();
      const unwatch = live.watch(lineId, () => changed.abort());
      try {
        const now = (await kv.get(lineKeys.line(lineId))).value;
        if (!now) return { ...line, ...DELETED };
        line = now;
        const left = over - runtime.clock.now();
        if (done(line) || left <= 0) return line;
        await sleep(runtime.clock, Math.min(left, LOOK_EVERY_MS), changed.signal);
      } finally {
        unwatch();
      }
    }
  }

  async function bringAbout(accountId: string, lineId: string, wanted: Wanted): Promise<Line> {
    const written = wanted === "deleted"
      ? await counting.add(accountId, () => write(accountId, lineId, wanted))
      : await write(accountId, lineId, wanted);
    live.reconcile(written);
    return await until(
      lineId,
      written,
      (line) => isReached(line, written),
    );
  }

  /** The live connection of a line that is connected. */
  async function connectionOf(accountId: string, lineId: string): Promise<LiveConnection> {
    const { value: line } = await row(accountId, lineId);
    const connection = live.connection(lineId);
    if (line.status === "connected" && connection) return connection;
    throw new Problem("session_not_connected", `The session is ${line.status}; this needs it to be connected.`);
  }

  /** One step of the passkey, and the line as it is then: with the next step, or with why this one was refused. */
  async function passkeyStep(
    accountId: string,
    lineId: string,
    step: (connection: Pick<Connection, "signPasskey" | "confirmPasskey">) => Promise<void>,
  ): Promise<Line> {
    const { value: before } = await row(accountId, lineId);
    const connection = live.present(lineId);
    if (!before.passkey || !connection) throw new PasskeyNotRequested();
    const written = () => until(lineId, before, ({ passkey }) => passkey?.expiresAt !== before.passkey?.expiresAt);
    try {
      await step(connection);
    } catch (error) {
      if (error instanceof PasskeyRefused) await written();
      throw error;
    }
    return await used(await written());
  }

  return {
    async create(accountId, options) {
      const proxy = await proxyOf(options.proxy ?? null);
      const creation = () => creationOf(accountId, { ...options, proxy });
      const line = await counting.add(accountId, () => retryOnConflict(kv, creation));
      live.reconcile(line);
      return line;
    },

    async list(accountId) {
      const lines: Line[] = [];
      for await (const line of linesOf(accountId)) lines.push(line);
      const usedAt = await kv.getMany(lines.map((line) => lineKeys.lineUsed(line.id)));
      return lines.map((line, i) => ({ ...line, lastUsed: usedAt[i]?.value ?? line.lastUsed }));
    },

    get: async (accountId, lineId) => await used((await row(accountId, lineId)).value),

    async linking(accountId, lineId) {
      let { value: line } = await row(accountId, lineId);
      const ranOut = line.status === "disconnected" && !line.linked && line.wanted === "connected";
      if (ranOut) line = await bringAbout(accountId, lineId, "connected");
      const { status, qr, pairingCode } = line;
      return { status, qr: qr === null ? null : await qrDataUrl(qr), pairingCode };
    },

    async want(accountId, lineId, wanted) {
      // The row of it goes with a deleted line.
      const before = (await kv.get(lineKeys.lineUsed(lineId))).value;
      const line = await bringAbout(accountId, lineId, wanted);
      return await used({ ...line, lastUsed: before ?? line.lastUsed });
    },

    async forSending(accountId, lineId) {
      const chosen = lineId ?? await defaultLine(accountId);
      const remembered = sendable.get(chosen);
      if (remembered?.value.accountId === accountId) return remembered;
      const found = await row(accountId, chosen);
      const { linked, wanted, status } = found.value;
      if (!linked || wanted === "logged_out") {
        throw new Problem("session_not_connected", `The session is ${status}: link it before sending.`);
      }
      sendable.set(chosen, found);
      return found;
    },

    async pauseQueue(accountId, lineId, paused) {
      const { value: line } = await row(accountId, lineId);
      const at = lineKeys.queuePaused(lineId);
      await kv.commit(paused ? new Change().set(at, true) : new Change().delete(at));
      live.queueChanged(lineId);
      return await used(line);
    },

    changed: (lineId) => void sendable.delete(lineId),

    async update(accountId, lineId, { name, proxy }) {
      const changed = proxy === undefined ? {} : { proxy: await proxyOf(proxy) };
      const line = await retryOnConflict<Line>(kv, async () => {
        const slot = await row(accountId, lineId);
        const comesUpAnew = proxy !== undefined && slot.value.wanted === "connected";
        const line: Line = {
          ...slot.value,
          ...changed,
          ...(name === undefined ? {} : { name }),
          generation: slot.value.generation + (comesUpAnew ? 1 : 0),
        };
        sendable.delete(lineId);
        return { change: new Change().check(slot).set(lineKeys.line(lineId), line), result: line };
      });
      live.reconcile(line);
      return await used(await until(lineId, line, (now) => isReached(now, line)));
    },

    async health(accountId, lineId) {
      const { value: { restriction } } = await row(accountId, lineId);
      const holds = await Holds.of({ kv, accounts, clock: runtime.clock }, { accountId, id: lineId });
      const queue = new LineQueue(kv, lineId);
      const [waiting, since] = [await queue.size(), await queue.oldestSince()];
      return {
        ...await live.vitals(lineId),
        restriction: restriction ?? null,
        newChats: holds?.newChats ?? null,
        queue: {
          waiting,
          oldestSeconds: since === null ? 0 : Math.max(0, Math.floor((runtime.clock.now() - since) / 1000)),
          waitsFor: holds?.ofAll() ?? null,
        },
      };
    },

    async passkey(accountId, lineId) {
      const { value: { passkey } } = await row(accountId, lineId);
      if (!passkey) throw notFound("passkey request");
      return passkey;
    },

    signPasskey: (accountId, lineId, assertion) =>
      passkeyStep(accountId, lineId, (connection) => connection.signPasskey(assertion)),

    confirmPasskey: (accountId, lineId) => passkeyStep(accountId, lineId, (connection) => connection.confirmPasskey()),

    connection: connectionOf,
  };
}

/** Whether the line is where it was wanted when this was written, or has come to a halt on its way. */
function isReached(now: Line, { generation, wanted }: Line): boolean {
  return now.observedGeneration >= generation && (REACHED[wanted].includes(now.status) || now.halted);
}
