/** Faults that the control API asks for, by line (phone number): what the network does wrong, and until when. */
import { type BinaryNode, element } from "./stanza.ts";
import type { Clock } from "../../runtime.ts";

/** Ends a connection once; on a line that is away, its next one. */
export const STREAM_FAULTS = ["drop", "replace", "logout", "restart", "unavailable"] as const;
/** Lasts for a time. */
export const TIMED_FAULTS = ["silence", "hold_acks"] as const;
/** Concerns the next messages. */
export const COUNTED_FAULTS = ["nack", "duplicate"] as const;
/** Concerns the next uploads: each takes a time. */
export const UPLOAD_FAULT = "slow_upload";

export type StreamFault = (typeof STREAM_FAULTS)[number];
export type TimedFault = (typeof TIMED_FAULTS)[number];

interface LineFaults {
  /** Stream faults that wait for a connection. */
  pending: StreamFault[];
  /** Unix ms until which a timed fault holds. */
  until: Record<TimedFault, number>;
  /** One refusal each, in the order in which they were asked for. */
  nacks: string[];
  duplicates: number;
  /** How long each of the next uploads takes, ms. */
  slowUploads: number[];
}

export class Faults {
  #lines = new Map<string, LineFaults>();
  #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A stream fault for the line's next connection. */
  await(line: string, kind: StreamFault): void {
    this.#of(line).pending.push(kind);
  }

  /** The stream fault that the line's new connection meets, once. */
  takePending(line: string): StreamFault | null {
    return this.#lines.get(line)?.pending.shift() ?? null;
  }

  /** Starts a timed fault; a longer one that already holds stays. */
  hold(line: string, kind: TimedFault, durationMs: number): void {
    const { until } = this.#of(line);
    until[kind] = Math.max(until[kind], this.#clock.now() + durationMs);
  }

  /** Milliseconds that a timed fault still lasts; 0 when it does not hold. */
  remainingMs(line: string, kind: TimedFault): number {
    return Math.max(0, (this.#lines.get(line)?.until[kind] ?? 0) - this.#clock.now());
  }

  /** The next `count` messages of the line are refused with `code`. */
  nack(line: string, { code, count }: { code: string; count: number }): void {
    this.#of(line).nacks.push(...Array.from({ length: count }, () => code));
  }

  /** The code with which a message that arrived now is refused, or null. */
  takeNack(line: string): string | null {
    return this.#lines.get(line)?.nacks.shift() ?? null;
  }

  /** The next `count` incoming messages reach the line twice. */
  duplicate(line: string, count: number): void {
    this.#of(line).duplicates += count;
  }

  takeDuplicate(line: string): boolean {
    const faults = this.#lines.get(line);
    if (!faults?.duplicates) return false;
    faults.duplicates--;
    return true;
  }

  /** Each of the line's next `count` uploads takes this long. */
  slowUpload(line: string, { durationMs, count }: { durationMs: number; count: number }): void {
    this.#of(line).slowUploads.push(...Array.from({ length: count }, () => durationMs));
  }

  /** How long an upload that begins now takes, ms; 0 when nothing slows it down. */
  takeUploadMs(line: string): number {
    return this.#lines.get(line)?.slowUploads.shift() ?? 0;
  }

  #of(line: string): LineFaults {
    let faults = this.#lines.get(line);
    if (!faults) {
      faults = { pending: [], until: { silence: 0, hold_acks: 0 }, nacks: [], duplicates: 0, slowUploads: [] };
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
