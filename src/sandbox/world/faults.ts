/** Faults that the control API asks for, by line (phone number): what the network does wrong, and until when. */
import { type BinaryNode, element } from "./stanza.ts";
import type { Clock } from "../../runtime.ts";

/** Ends a connection once; on a line that is away, its next one. */
export const STREAM_FAULTS = ["drop", "replace", "logout", "restart", "unavailable"] as const;
/** Lasts for a time. */
export const TIMED_FAULTS = ["silence", "hold_acks"] as const;

export type StreamFault = (typeof STREAM_FAULTS)[number];
type TimedFault = (typeof TIMED_FAULTS)[number];

/** Affects the next few of what it names; each entry says how. */
interface CountedFaults {
  /** An outgoing message is refused with this code. */
  nack: string;
  /** An incoming message reaches the line twice. */
  duplicate: true;
  /** A login is told that stanzas wait, and gets none. */
  deaf: true;
  /** A message reaches the line with a ciphertext that nobody can read. */
  garble: true;
  /** A message to a person is refused unless it carries a token of that chat, or one made for it. */
  demand_token: true;
  /** An upload takes this long, ms. */
  slow_upload: number;
  /** A companion that asks to be linked by a code of this number is refused with this code. */
  refuse_code: string;
  /** A login is refused for this reason. */
  refuse_login: string;
  /** A companion is told that it is logged in before the phone has accepted it. */
  early_success: true;
}
type CountedFault = keyof CountedFaults;

interface LineFaults {
  /** Stream faults that wait for a connection. */
  pending: StreamFault[];
  /** Unix ms until which a timed fault holds. */
  until: Record<TimedFault, number>;
  /** Ends of what goes on. */
  waiting: Set<() => void>;
  /** In the order in which they were set. */
  counted: { [Kind in CountedFault]?: CountedFaults[Kind][] };
}

export class Faults {
  #lines = new Map<string, LineFaults>();
  #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A stream fault for the line's next `count` connections. */
  await(line: string, kind: StreamFault, count = 1): void {
    this.#of(line).pending.push(...Array.from({ length: count }, () => kind));
  }

  /** Takes the stream fault that is meant for the line's new connection. */
  takePending(line: string): StreamFault | null {
    return this.#lines.get(line)?.pending.shift() ?? null;
  }

  /** Starts a timed fault; a longer one that already holds stays. */
  hold(line: string, kind: TimedFault, durationMs: number): void {
    const { until } = this.#of(line);
    until[kind] = Math.max(until[kind], this.#clock.now() + durationMs);
  }

  /** Whether a timed fault holds now. */
  holds(line: string, kind: TimedFault): boolean {
    return this.#remainingMs(line, kind) > 0;
  }

  /** Runs when the timed fault is over, by its time or because it was lifted; at once where none holds. */
  after(line: string, kind: TimedFault, run: () => void): void {
    const remainingMs = this.#remainingMs(line, kind);
    if (remainingMs === 0) return run();
    this.#wait(line, remainingMs, () => this.after(line, kind, run));
  }

  /** Resolves when an upload that begins now may be answered: a slow one after its time, or when it is lifted. */
  upload(line: string): Promise<void> {
    const durationMs = this.take(line, "slow_upload");
    if (durationMs === null) return Promise.resolve();
    return new Promise((resolve) => this.#wait(line, durationMs, resolve));
  }

  /** Runs after that time, or when the line's faults are lifted. */
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

  /** Ends every fault of the line that holds or waits for its turn. */
  lift(line: string): void {
    const faults = this.#lines.get(line);
    this.#lines.delete(line);
    for (const over of [...faults?.waiting ?? []]) over();
  }

  /** The fault affects the line's next `count` of what it names. */
  add<Kind extends CountedFault>(line: string, kind: Kind, how: CountedFaults[Kind], count = 1): void {
    const { counted } = this.#of(line);
    const queue: CountedFaults[Kind][] = counted[kind] ??= [];
    queue.push(...Array.from({ length: count }, () => how));
  }

  /** How it affects the one that comes now; null when it does not. */
  take<Kind extends CountedFault>(line: string, kind: Kind): CountedFaults[Kind] | null {
    return this.#lines.get(line)?.counted[kind]?.shift() ?? null;
  }

  #remainingMs(line: string, kind: TimedFault): number {
    return Math.max(0, (this.#lines.get(line)?.until[kind] ?? 0) - this.#clock.now());
  }

  #of(line: string): LineFaults {
    let faults = this.#lines.get(line);
    if (!faults) {
      faults = { pending: [], until: { silence: 0, hold_acks: 0 }, waiting: new Set(), counted: {} };
      this.#lines.set(line, faults);
    }
    return faults;
  }
}

/** The stream error with which a connection ends; null for `drop`, which says nothing. */
export function streamError(kind: StreamFault): BinaryNode | null {
  switch (kind) {
    case "drop":
      return null;
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
