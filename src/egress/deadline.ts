/** The one time limit of a request, whatever stage it is in. */
import type { Clock } from "../runtime.ts";
import { EgressError } from "./egress_error.ts";
import { BadResponse } from "./http1.ts";

/** The time of one request, redirects and body included, and what must be closed when it ends. */
export class Deadline {
  /** Why time is up; null while it is not. */
  #stopped: EgressError | null = null;
  /** Those who wait for a promise now. A `Promise.race` for each would keep every result until the request has ended. */
  readonly #waiting = new Set<(reason: EgressError) => void>();
  #cancelTimer: () => void;
  #unlisten: () => void;
  #release: (() => void) | null = null;

  constructor(clock: Clock, { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal }) {
    this.#cancelTimer = clock.after(timeoutMs, () => {
      this.#stop(new EgressError("timeout", `there was no complete answer within ${timeoutMs / 1000} s`));
    });
    const abort = () => this.#stop(new EgressError("aborted", "the request was stopped"));
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
    this.#unlisten = () => signal?.removeEventListener("abort", abort);
  }

  #stop(reason: EgressError): void {
    if (this.#stopped) return;
    this.#stopped = reason;
    this.release();
    for (const stop of this.#waiting) stop(reason);
    this.#waiting.clear();
  }

  /** What the promise gives, unless time is up first; `late` takes what then comes too late. */
  race<T>(promise: Promise<T>, late?: (value: T) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      const stop = (reason: EgressError) => reject(reason);
      if (this.#stopped) stop(this.#stopped);
      else this.#waiting.add(stop);
      promise.then((value) => {
        if (this.#waiting.delete(stop)) resolve(value);
        else late?.(value);
      }, (error) => {
        this.#waiting.delete(stop);
        reject(error);
      });
    });
  }

  /** What to close when time is up or the request ends; it must not throw. */
  onStop(close: () => void): void {
    this.#release = close;
  }

  /** Nothing is to be closed any more. */
  letGo(): void {
    this.#release = null;
  }

  /** Closes what is open, for instance before the next hop. */
  release(): void {
    this.#release?.();
    this.#release = null;
  }

  /** The request has come to its end. */
  end(): void {
    this.#cancelTimer();
    this.#unlisten();
    this.release();
  }

  /** The request has failed; gives the error as users may read it. */
  fail(error: unknown): EgressError {
    this.end();
    if (error instanceof EgressError) return error;
    if (error instanceof BadResponse) return new EgressError("bad_response", error.message, { cause: error });
    return new EgressError("unreachable", "the connection broke", { cause: error });
  }
}
