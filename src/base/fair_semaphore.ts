/**
 * A semaphore shared fairly: tenants are served in turn and none holds more than its share, so that a flood from one
 * tenant delays only that tenant.
 */
import type { Clock } from "../runtime.ts";

interface FairSemaphoreOptions {
  /** How many tasks may run at once, over all tenants. */
  inAll: number;
  /** How many tasks of one tenant may run at once. */
  each: number;
  /**
   * If given, a place stays unused after a task for as long as the task took, which leaves processor time for others.
   */
  restBy?: Clock;
}

interface Tenant {
  running: number;
  /** Waiting tasks by lane; the next lane to be served comes first. */
  lanes: Map<string, (() => void)[]>;
}

/** Who a task belongs to. Within a tenant, lanes take turns too, such as the webhooks of an account. */
interface Turn {
  tenant: string;
  lane?: string;
  /** Aborts when the task is no longer needed. */
  signal?: AbortSignal;
}

export class FairSemaphore {
  readonly #options: FairSemaphoreOptions;
  /** Tenants with running or waiting tasks; the next to be served comes first. */
  readonly #tenants = new Map<string, Tenant>();
  #running = 0;
  #waiting = 0;

  constructor(options: FairSemaphoreOptions) {
    this.#options = options;
  }

  /** Number of waiting tasks. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Runs the task once it gets a place, and settles as it does. Rejects with the signal's reason if that aborts before
   * the task has begun.
   */
  async run<T>(turn: Turn, work: () => Promise<T>): Promise<T> {
    using _place = await this.enter(turn);
    return await work();
  }

  /** Resolves once it gets a place, which disposing releases. Rejects as `run` does. */
  async enter({ tenant, lane = "", signal }: Turn): Promise<Disposable> {
    await this.#place(tenant, { lane, signal });
    const { restBy } = this.#options;
    const begun = restBy?.now() ?? 0;
    return {
      [Symbol.dispose]: () => {
        const tookMs = restBy ? restBy.now() - begun : 0;
        if (tookMs > 0) restBy!.after(tookMs, () => this.#leave(tenant));
        else this.#leave(tenant);
      },
    };
  }

  #place(name: string, { lane, signal }: { lane: string; signal: AbortSignal | undefined }): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const tenant: Tenant = this.#tenants.get(name) ?? { running: 0, lanes: new Map() };
    this.#tenants.set(name, tenant);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = () => {
      this.#drop(name, { lane, begin });
      reject(signal!.reason);
    };
    const begin = () => {
      signal?.removeEventListener("abort", leave);
      resolve();
    };
    signal?.addEventListener("abort", leave, { once: true });
    const waiting = tenant.lanes.get(lane);
    if (waiting) waiting.push(begin);
    else tenant.lanes.set(lane, [begin]);
    this.#waiting++;
    this.#serve();
    return promise;
  }

  /** Removes a waiting task from its lane. */
  #drop(name: string, { lane, begin }: { lane: string; begin: () => void }): void {
    const tenant = this.#tenants.get(name)!;
    const waiting = tenant.lanes.get(lane)!.filter((other) => other !== begin);
    if (waiting.length > 0) tenant.lanes.set(lane, waiting);
    else tenant.lanes.delete(lane);
    this.#waiting--;
    this.#forget(name, tenant);
  }

  #forget(name: string, { running, lanes }: Tenant): void {
    if (running === 0 && lanes.size === 0) this.#tenants.delete(name);
  }

  #leave(name: string): void {
    const tenant = this.#tenants.get(name)!;
    tenant.running--;
    this.#running--;
    this.#forget(name, tenant);
    this.#serve();
  }

  #serve(): void {
    while (this.#running < this.#options.inAll && this.#waiting > 0) {
      const next = this.#next();
      if (!next) return;
      const [name, tenant] = next;
      const [lane, waiting] = tenant.lanes.entries().next().value!;
      const begin = waiting.shift()!;
      tenant.running++;
      this.#running++;
      this.#waiting--;
      // The lane and the tenant that were served move to the end.
      tenant.lanes.delete(lane);
      if (waiting.length > 0) tenant.lanes.set(lane, waiting);
      this.#tenants.delete(name);
      this.#tenants.set(name, tenant);
      begin();
    }
  }

  /** Returns the next tenant that may run one more task. */
  #next(): [string, Tenant] | null {
    for (const entry of this.#tenants) {
      const [, { running, lanes }] = entry;
      if (lanes.size > 0 && running < this.#options.each) return entry;
    }
    return null;
  }
}
