/** Faults injected through the control API, by line (phone number): what the network does wrong, and until when. */
import { type BinaryNode, element } from "./stanza.ts";
import type { Clock } from "../../runtime.ts";

/** Faults that end one connection: the current one, or the next one of a line that is offline. */
export const STREAM_FAULTS = ["drop", "replace", "logout", "restart", "unavailable"] as const;
/** Faults that hold for a time. */
export const TIMED_FAULTS = ["silence", "hold_acks"] as const;

export type StreamFault = (typeof STREAM_FAULTS)[number];
type TimedFault = (typeof TIMED_FAULTS)[number];

/** Faults that affect the next few events of a kind. */
export const COUNTED_FAULTS = [
  /** Delivers an incoming message twice. */
  "duplicate",
  /** Sends `<success>` to a companion before the phone has accepted it. */
  "early_success",
  /** Of the emulated Cloud API, see `cloud/emulation.ts`. */
  "webhook_twice",
  "webhook_lost",
  "bad_signature",
  /** Refuses a message to a person unless it carries a token of that chat (`tctoken`) or one made for it (`cstoken`). */
  "demand_token",
  /** Announces waiting stanzas at login, but delivers none. */
  "deaf",
  /** Delivers a message with a ciphertext that cannot be decrypted. */
  "garble",
  /** Delivers what waits at login, but never says that this was all. */
  "no_offline_end",
  /** Refuses a companion's answer to the phone on which its code was entered. */
  "refuse_finish",
  /** When a code expires, says that a person has to ask for the next one. */
  "manual_refresh",
  /** Takes a passkey's signature that comes with a handoff proof, but never asks the phone. */
  "no_continuation",
] as const;

/** Those of them that say more than that they happen. The type is that of a queued entry. */
interface DetailedFaults {
  /** Ends a new connection. */
  stream: StreamFault;
  /** Refuses an outgoing message with this code. */
  nack: string;
  /** Delays the answer to an upload by this time, ms. */
  slow_upload: number;
  /** Refuses to link a companion by code, with this error code, and in seconds when to ask again. */
  refuse_code: { code: string; backoff?: string };
  /** Refuses a login with this reason. */
  refuse_login: string;
  /** Of the emulated Cloud API, as above. */
  cloud_error: number;
  webhook_late: number;
}
type CountedFaults = DetailedFaults & Record<(typeof COUNTED_FAULTS)[number], true>;
type CountedFault = keyof CountedFaults;

class LineFaults {
  /** Unix ms until which each timed fault holds. */
  readonly until: Record<TimedFault, number> = { silence: 0, hold_acks: 0 };
  /** Callbacks that end the waits in progress. */
  readonly waiting = new Set<() => void>();
  /** Queued entries of counted faults, in the order in which they were set. */
  readonly counted: { [Kind in CountedFault]?: CountedFaults[Kind][] } = {};
}

export class Faults {
  #lines = new Map<string, LineFaults>();
  #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts a timed fault; never shortens one that already holds. */
  hold(line: string, kind: TimedFault, durationMs: number): void {
    const { until } = this.#of(line);
    until[kind] = Math.max(until[kind], this.#clock.now() + durationMs);
  }

  /** Whether a timed fault holds now. */
  holds(line: string, kind: TimedFault): boolean {
    return this.#remainingMs(line, kind) > 0;
  }

  /** Calls `run` when the timed fault has ended or was lifted; immediately if it does not hold. */
  after(line: string, kind: TimedFault, run: () => void): void {
    const remainingMs = this.#remainingMs(line, kind);
    if (remainingMs === 0) return run();
    this.#wait(line, remainingMs, () => this.after(line, kind, run));
  }

  /**
   * Resolves when an upload that begins now may be answered: immediately, or if it is slowed down, after its delay or
   * when the fault is lifted.
   */
  upload(line: string): Promise<void> {
    const durationMs = this.take(line, "slow_upload");
    if (durationMs === null) return Promise.resolve();
    return new Promise((resolve) => this.#wait(line, durationMs, resolve));
  }

  /** Calls `run` after `durationMs`, or when the line's faults are lifted. */
  #wait(line: string, durationMs: number, run: () => void): void {
    const { waiting } = this.#of(line);
    const over = () => {
      cancel();
      waiting.delete(over);
      run();
    };
    const cancel = this.#clock.after(durationMs, over);
    waiting.add(over);
  }

  /** Ends all faults of the line, active and queued. */
  lift(line: string): void {
    const faults = this.#lines.get(line);
    this.#lines.delete(line);
    for (const over of [...faults?.waiting ?? []]) over();
  }

  /** Applies a counted fault to the line's next `count` events of its kind. */
  add<Kind extends CountedFault>(line: string, kind: Kind, how: CountedFaults[Kind], count = 1): void {
    const { counted } = this.#of(line);
    const queue: CountedFaults[Kind][] = counted[kind] ??= [];
    queue.push(...Array.from({ length: count }, () => how));
  }

  /** Removes and returns the entry for the current event; null if the fault does not affect it. */
  take<Kind extends CountedFault>(line: string, kind: Kind): CountedFaults[Kind] | null {
    return this.#lines.get(line)?.counted[kind]?.shift() ?? null;
  }

  #remainingMs(line: string, kind: TimedFault): number {
    return Math.max(0, (this.#lines.get(line)?.until[kind] ?? 0) - this.#clock.now());
  }

  #of(line: string): LineFaults {
    const faults = this.#lines.get(line) ?? new LineFaults();
    this.#lines.set(line, faults);
    return faults;
  }
}

/** Ends a connection with the fault's stream error, or without one (`drop`). */
export function breakOff(connection: { end(last: BinaryNode): void; cut(): void }, kind: StreamFault): void {
  if (kind === "drop") connection.cut();
  else connection.end(streamError(kind));
}

/** Returns the stream error that ends the connection. */
export function streamError(kind: Exclude<StreamFault, "drop">): BinaryNode {
  switch (kind) {
    case "replace":
      return element("stream:error", {}, [element("conflict", { type: "replaced" })]);
    case "logout":
      return element("stream:error", { code: "401" }, [element("conflict", { type: "device_removed" })]);
    case "restart":
      return element("stream:error", { code: "515" });
    case "unavailable":
      return element("stream:error", { code: "503" });
  }
}
