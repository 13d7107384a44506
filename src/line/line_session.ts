/**
 * The session of a line in this process: brings about the wanted state and writes the actual one (promise 5).
 * Everything that happens to the line, caused by the network or its owner, is a task of one queue, so that changes
 * never overlap. The table in `line.ts` defines the states. A failure here never affects another line.
 */
import PQueue from "p-queue";
import type { MessageError } from "../message/message.ts";
import type { Recorder } from "../message/record.ts";
import type { Service } from "../base/service.ts";
import { settledWithin } from "../base/within.ts";
import type { Seal } from "../store/seal.ts";
import type {
  CloseReason,
  Connection,
  ConnectionEvents,
  OwnIdentity,
  PasskeyRequest,
  Restriction,
} from "../whatsapp/connection.ts";
import type { Network } from "../whatsapp/network.ts";
import { BackOff, LinkAttempts } from "./back_off.ts";
import { DELETED_REASON, EXPORTED_REASON, EXPORTING_REASON, type Line, NOTHING_TO_LINK } from "./line.ts";
import { LineConnection } from "./line_connection.ts";
import { deleteLine, LineRow } from "./line_row.ts";
import { MOVED } from "./moved_queue.ts";
import { Receiver, type ReceiverDeps } from "./receiver.ts";
import { Runner, type RunnerDeps } from "./runner/runner.ts";

type LineSessionDeps = RunnerDeps & ReceiverDeps & { seal: Pick<Seal, "open">; network: Network };

/** How long a stop waits for the message that is on its way. */
const FINISH_WITHIN_MS = 3_000;

/** What ends with the link: a restriction is one of its account. */
const UNLINKED = { linked: false, restriction: null } as const;

/**
 * Errors of messages that were waiting when the link ended. They fail at once: a new link may be
 * another number, or never come.
 */
const LOGGED_OUT = {
  code: "session_logged_out",
  message: "The session was logged out before the message could leave.",
};
const DELETED = { code: "session_deleted", message: "The session was deleted before the message could leave." };

export class LineSession implements Service {
  readonly lineId: string;
  readonly runner: Runner;
  readonly connection: LineConnection;
  readonly #deps: LineSessionDeps;
  readonly #receiver: Receiver;
  readonly #row: LineRow;
  readonly #changed: () => void;
  readonly #stopping = new AbortController();
  #started = false;
  readonly #tasks = new PQueue({ concurrency: 1 });
  readonly #backOff: BackOff;
  readonly #attempts = new LinkAttempts();
  #cancelRetry: () => void = () => {};
  #stopped: Promise<void> | null = null;

  /** `changed` is called after every change of the line's row, and after its removal. */
  constructor(deps: LineSessionDeps, line: { id: string; accountId: string }, changed: () => void) {
    this.lineId = line.id;
    this.#deps = deps;
    this.#backOff = new BackOff(deps.runtime.random);
    this.#changed = changed;
    const inLine = { lineId: line.id, accountId: line.accountId };
    this.#receiver = new Receiver(deps, inLine, () => this.runner.recorded());
    const { kv, events, runtime } = deps;
    this.#row = new LineRow({ kv, events, runtime, lineId: line.id, signal: this.#stopping.signal, changed });
    this.runner = new Runner(deps, { ...inLine, suspect: (connection) => this.#suspect(connection) });
    this.connection = new LineConnection(deps, {
      lineId: line.id,
      signal: this.#stopping.signal,
      soon: (task) => this.#soon(task),
      heard: {
        qr: (qr) => this.#offered("qr", { qr }),
        pairingCode: (pairingCode) => this.#offered("code", { pairingCode }),
        passkey: (request) => this.#passkey(request),
        linked: (identity) => this.#linked(identity),
        restricted: (restriction) => this.#restricted(restriction),
        degraded: (reason) => this.#row.change("noted", { reason }),
        open: (identity, connection) => this.#opened(identity, connection),
        closed: (reason, lastedMs) => this.#closed(reason, lastedMs),
      },
      incoming: this.#incoming(),
      down: () => this.runner.use({ kind: "waiting" }),
    });
  }

  /** The recorder that writes through the line's own store. */
  get recorder(): Recorder {
    return this.#deps.recorder;
  }

  /** Begins to bring the line up. Resolves at once. */
  async start(): Promise<void> {
    if (this.#started || this.#stopped) return;
    this.#started = true;
    this.#soon(() => this.#boot());
    await this.runner.start();
  }

  /**
   * Reads the wanted state, which may have changed, and acts on it. Starts a session that is
   * still to be started at boot.
   */
  reconcile(): void {
    void this.start();
    this.#soon(() => this.#reconcile());
  }

  /** Closes the connection and keeps the link, after a limited wait for the message that is on its way. Idempotent. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  /** Resolves when the line's queue of tasks is empty. */
  async idle(): Promise<void> {
    await this.#tasks.onIdle();
  }

  async #stop(): Promise<void> {
    const { clock } = this.#deps.runtime;
    this.#stopping.abort();
    this.#cancelRetry();
    const finished = this.runner.stop();
    await settledWithin(clock, FINISH_WITHIN_MS, finished);
    this.#receiver.stop();
    await this.connection.close();
    await settledWithin(clock, FINISH_WITHIN_MS, Promise.all([finished, this.#tasks.onIdle()]));
  }

  /** Adds a task to the queue. Tasks run one after another; the failure of one is logged and does not stop the next. */
  #soon(task: () => Promise<void>): void {
    void this.#tasks.add(async () => {
      if (this.#stopping.signal.aborted) return;
      try {
        await task();
      } catch (error) {
        if (this.#stopping.signal.aborted) return; // the next start continues
        this.#deps.runtime.log.error({ lineId: this.lineId, error: String(error) }, "a line met an unexpected error");
        this.#retryLater();
      }
    });
  }

  // The wanted state

  async #boot(): Promise<void> {
    const line = await this.#row.read();
    if (!line) return;
    if (line.qr !== null || line.pairingCode !== null) this.#attempts.resume(line.reason);
    // First, so that the line is not shown as connected, however long the next steps take.
    await this.#row.change("booted", NOTHING_TO_LINK);
    const linked = await this.#row.untilDone(() => this.#deps.network.isLinked(this.lineId));
    // The process died between the network's report and the write of the row: the credentials decide.
    if (linked !== line.linked) {
      if (linked) await this.#row.change("linked", { linked });
      else await this.#row.change("logged_out", { ...UNLINKED, halted: true, reason: "The link is gone." });
    }
    if (!linked && line.linked || line.status === "logged_out") {
      await this.#endQueue(endingOf(line));
    }
    if (line.observedGeneration !== line.generation) return await this.#reconcile();
    const now = await this.#row.read();
    if (now?.wanted === "connected" && !now.halted) await this.#open(now);
  }

  async #reconcile(): Promise<void> {
    const line = await this.#row.read();
    if (!line || line.observedGeneration === line.generation) return;
    const observed = { observedGeneration: line.generation, halted: false, ...NOTHING_TO_LINK };
    this.#cancelRetry();
    this.#backOff.reset();
    this.#attempts.reset();
    // Before the generation counts as observed: the export waits for that, and a new link may follow.
    if (line.reason === EXPORTED_REASON) await this.#moveOut();
    switch (line.wanted) {
      case "connected":
        await this.connection.close();
        if (line.linked) await this.#row.change("reopening", { ...observed, reason: "It is being reconnected." });
        else await this.#row.change("linking", { ...observed, reason: null });
        return await this.#open(line);
      case "exported":
        return await this.#row.change("logged_out", {
          ...observed,
          ...UNLINKED,
          halted: true,
          reason: EXPORTED_REASON,
        });
      case "paused":
      case "exporting":
        await this.connection.close();
        return await this.#row.change("paused", {
          ...observed,
          reason: line.wanted === "paused" ? "The owner disconnected it." : EXPORTING_REASON,
        });
      case "logged_out":
        await this.#unlink(line);
        await this.#row.change("logged_out", {
          ...observed,
          ...UNLINKED,
          reason: "The owner logged it out.",
        });
        return await this.#endQueue(LOGGED_OUT);
      case "deleted":
        await this.#unlink(line);
        // The generation is not marked as observed: the deletion is done only when the row is gone.
        if (line.linked) await this.#row.change("logged_out", { linked: false, reason: DELETED_REASON });
        await this.#endQueue(DELETED);
        if (this.#stopping.signal.aborted) return; // the next start continues
        await this.#row.untilDone(() => deleteLine(this.#deps.kv, line, this.#deps.runtime.clock.now()));
        return this.#changed();
    }
  }

  // Reports of the network

  #incoming(): Pick<ConnectionEvents, "message" | "receipt" | "notice"> {
    return {
      message: async (message, settle) => {
        const isSettled = await this.#receiver.message(message, settle);
        if (!message.fromMe) this.runner.heard(message);
        return isSettled;
      },
      notice: (notice) => this.#receiver.notice(notice),
      receipt: async (receipt) => {
        if (await this.#receiver.receipt(receipt)) this.runner.wake();
      },
    };
  }

  async #offered(trigger: "qr" | "code", shown: Pick<Line, "qr"> | Pick<Line, "pairingCode">): Promise<void> {
    await this.#row.change(trigger, { ...NOTHING_TO_LINK, ...shown, reason: this.#attempts.offered() });
  }

  async #passkey(passkey: PasskeyRequest | null): Promise<void> {
    await this.#row.change("passkey", { ...NOTHING_TO_LINK, passkey, reason: passkeyReason(passkey) });
  }

  /** Writes the restriction. Messages to new chats wait until it ends, or expire. */
  async #restricted(restriction: Restriction | null): Promise<void> {
    await this.#row.change("noted", { restriction });
    this.runner.wake();
  }

  async #linked({ phone }: OwnIdentity): Promise<void> {
    this.#attempts.reset();
    this.#backOff.reset();
    await this.#hasNumber("linked", phone);
  }

  async #opened({ phone }: OwnIdentity, connection: Connection): Promise<void> {
    this.#attempts.reset();
    await this.#hasNumber("opened", phone);
    // The connection may have ended during the write.
    if (this.connection.holds(connection)) this.runner.use({ kind: "open", connection });
  }

  async #closed({ kind, detail: reason, code, retryAfterMs }: CloseReason, lastedMs: number): Promise<void> {
    this.#backOff.ended(lastedMs);
    this.#attempts.ended(reason);
    const level = kind === "untrusted" ? "warn" : "info";
    this.#deps.runtime.log[level]({ lineId: this.lineId, kind, code, reason }, "a line's connection ended");
    const none = { ...NOTHING_TO_LINK, reason, refused: kind === "refused" };
    const line = await this.#row.read();
    if (!line) return;
    switch (kind) {
      case "restart":
        await this.#row.change("reopening", none);
        if (this.#backOff.restartsAtOnce()) return await this.#open(line);
        return this.#retryLater();
      case "replaced":
        return await this.#row.change("replaced", { ...none, halted: true });
      case "refused":
        await this.#row.change("refused", { ...none, halted: retryAfterMs == null });
        return retryAfterMs == null ? undefined : this.#retryAfter(retryAfterMs);
      case "logged_out":
        await this.#forget();
        await this.#row.change("logged_out", { ...none, ...UNLINKED, halted: true });
        return await this.#endQueue(LOGGED_OUT);
      case "link_expired":
        if (!this.#attempts.expired()) return await this.#row.change("link_expired", { ...none, halted: true });
        await this.#row.change("linking", none);
        return await this.#open(line);
      case "asked":
      case "lost":
      case "unavailable":
      case "untrusted":
        await this.#row.change(line.linked ? "dropped" : "linking", none);
        return this.#retryLater();
    }
  }

  /** Replaces a connection that gave the runner no answer: it may be dead without having noticed. */
  #suspect(connection: Connection): void {
    if (!this.connection.holds(connection)) return;
    this.runner.use({ kind: "waiting" });
    this.#soon(async () => {
      if (!this.connection.holds(connection)) return;
      await this.connection.close();
      await this.#row.change("dropped", { reason: "The network did not answer." });
      this.#retryLater();
    });
  }

  // Actions

  /** Writes that the line is linked to this number; forgets its last one if that was another. */
  async #hasNumber(trigger: "linked" | "opened", phone: string): Promise<void> {
    const before = (await this.#row.read())?.phone ?? phone;
    if (before !== phone) {
      await this.#row.untilDone(() => this.runner.forgetNumber());
      this.#deps.lookups.forget(this.lineId, "");
    }
    const changed = before === phone ? {} : { numberSince: this.#deps.runtime.clock.now() };
    await this.#row.change(trigger, { linked: true, phone, ...changed, ...NOTHING_TO_LINK, reason: null });
  }

  async #open(line: Line): Promise<void> {
    try {
      await this.connection.open(line);
    } catch (error) {
      this.#deps.runtime.log.error({ lineId: this.lineId, error: String(error) }, "a connection could not be opened");
      this.#retryLater();
    }
  }

  #retryLater(): void {
    this.#retryAfter(this.#backOff.next());
  }

  #retryAfter(pauseMs: number): void {
    this.#cancelRetry();
    this.#cancelRetry = this.#deps.runtime.clock.after(pauseMs, () =>
      this.#soon(async () => {
        const line = await this.#row.read();
        if (line?.wanted === "connected" && !line.halted && this.connection.present === null) await this.#open(line);
      }));
  }

  /** Unlinks the device on the network, if it can be reached, and drops credentials and keys. */
  async #unlink(line: Line): Promise<void> {
    await this.connection.logout(line);
    await this.#forget();
  }

  async #forget(): Promise<void> {
    const { message } = this.#incoming();
    await this.#row.untilDone(() => this.#deps.network.forget(this.lineId, message));
  }

  /** Fails what waits, and drops the link with all its keys: an export file holds both, and also the journal. */
  async #moveOut(): Promise<void> {
    await this.connection.close();
    await this.#endQueue(MOVED);
    await this.#row.untilDone(() => this.#deps.network.forget(this.lineId, () => Promise.resolve(true)));
  }

  /** Fails every waiting message before anything else is done: a new link may be another number. */
  async #endQueue(error: MessageError): Promise<void> {
    this.runner.use({ kind: "ended", error });
    await this.runner.idle();
  }
}

/** Returns the error of what waits on a line whose link has ended. */
function endingOf({ reason }: Line): MessageError {
  return reason === EXPORTED_REASON ? MOVED : LOGGED_OUT;
}

/** Returns the `reason` that the owner reads while the account asks for its passkey. */
function passkeyReason(passkey: PasskeyRequest | null): string {
  switch (passkey?.stage) {
    case "required":
      return passkey.refusal ?? "The account asks for its passkey: sign in a browser to go on.";
    case "confirm":
      return "Compare the code with the one on the phone, and confirm it.";
    default:
      return "The passkey was taken: the phone completes the link.";
  }
}
