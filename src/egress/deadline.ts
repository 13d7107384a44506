/** The one time limit of a request, whatever stage it is in. */
import type { Clock } from "../runtime.ts";
import { EgressError } from "./egress_error.ts";
import { BadResponse } from "./http1.ts";

/** The time of one request, redirects and body included, and what must be closed when it ends. */
export class Deadline {
  #stopped: Promise<never>;
  #stop!: (reason: EgressError) => void;
  #cancelTimer: () => void;
  #unlisten: () => void;
  #release: (() => void) | null = null;

  constructor(clock: Clock, { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal }) {
    this.#stopped = new Promise((_, reject) => this.#stop = reject);
    this.#stopped.catch(() => this.release());
    this.#cancelTimer = clock.after(timeoutMs, () => {
      this.#stop(new EgressError("timeout", `there was no complete answer within ${timeoutMs / 1000} s`));
    });
    const abort = () => this.#stop(new EgressError("aborted", "the request was stopped"));
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
    this.#unlisten = () => signal?.removeEventListener("abort", abort);
  }

  /** What the promise gives, unless time is up first; `late` takes what then comes too late. */
  race<T>(promise: Promise<T>, late?: (value: T) => void): Promise<T> {
    let over = false;
    promise.then((value) => over && late?.(value), () => {});
    return Promise.race([promise, this.#stopped]).catch((error) => {
      over = true;
      throw error;
    });
  }

  /** What to close when time is up or the request ends. */
  onStop(close: () => void): void {
    this.#release = close;
  }

  /** Nothing is to be closed any more. */
  letGo(): void {
    this.#release = null;
  }

  /** Closes what is open, for instance before the next hop. */
  release(): void {
    try {
      this.#release?.();
    } catch {
      // Closed by the other side already.
    }
    this.#release = null;
  }

  /** Ends the request; gives the error as users may read it. */
  end(error: unknown): EgressError {
    this.#cancelTimer();
    this.#unlisten();
    this.release();
    if (error instanceof EgressError) return error;
    if (error instanceof BadResponse) return new EgressError("bad_response", error.message, { cause: error });
    return new EgressError("unreachable", "the connection broke", { cause: error });
  }
}
