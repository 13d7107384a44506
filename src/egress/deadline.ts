/** The single time limit of a request over all its stages. */
import type { Clock } from "../runtime.ts";
import { EgressError } from "./egress_error.ts";
import { BadResponse } from "./http1.ts";

/** The time limit of one request, redirects and body included, and what must be closed when it ends. */
export class Deadline {
  /** Why the request was stopped; null while it runs. */
  #stopped: EgressError | null = null;
  /** Callers waiting in `race`. With `Promise.race`, every result would be retained until the request has ended. */
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

  /** Settles as the promise does, or rejects when the time is up; `late` then receives a value that comes too late. */
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

  /** Sets what to close when the time is up or the request ends; `close` must not throw. */
  onStop(close: () => void): void {
    this.#release = close;
  }

  /** Keeps the connection open when the request ends. */
  letGo(): void {
    this.#release = null;
  }

  /** Closes what is open, for example before the next redirect. */
  release(): void {
    this.#release?.();
    this.#release = null;
  }

  /** Ends the request. */
  end(): void {
    this.#cancelTimer();
    this.#unlisten();
    this.release();
  }

  /** Ends the request after a failure; returns the error in a form fit for users. */
  fail(error: unknown): EgressError {
    this.end();
    if (error instanceof EgressError) return error;
    if (error instanceof BadResponse) return new EgressError("bad_response", error.message, { cause: error });
    return new EgressError("unreachable", "the connection broke", { cause: error });
  }
}
