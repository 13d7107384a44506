/**
 * The attempts of one webhook, each in its account's turn. Endpoints whose last attempt failed have places of their own:
 * what hangs or fails takes none from what works.
 */
import type { FairSemaphore } from "../base/fair_semaphore.ts";
import type { SafeFetch } from "../egress/safe_fetch.ts";
import { type Runtime, sleep } from "../runtime.ts";
import type { Seal } from "../store/seal.ts";
import { attemptDelivery } from "./delivery.ts";
import type { Ended } from "./delivery_writer.ts";
import { liveSecrets, type WebhookRow } from "./webhook.ts";

/** How long a place rests after an attempt that failed: an endpoint that refuses at once is not called as fast as it can. */
const FAILING_REST_MS = 250;

/** Places for the attempts of all webhooks, which accounts share. */
interface Places {
  working: FairSemaphore;
  failing: FairSemaphore;
}

export interface AttemptsContext {
  safeFetch: SafeFetch;
  seal: Seal;
  runtime: Runtime;
  places: Places;
}

/** An attempt that is due. */
export type Due = Omit<Ended, "outcome">;

interface AttemptsOptions {
  webhook: () => WebhookRow;
  /** An attempt was made, at the webhook as it was then. */
  ended(due: Due, outcome: Ended["outcome"], target: WebhookRow): Promise<void>;
  /** Ends those that wait for their turn. */
  stopping: AbortSignal;
  /** Ends those that are on their way. */
  dropping: AbortSignal;
}

export class Attempts {
  readonly #context: AttemptsContext;
  readonly #options: AttemptsOptions;
  /** Those that are on their way or wait for their turn. */
  readonly #underWay = new Set<Promise<void>>();
  /** Whether the last attempt was a success. */
  #works = true;
  #opened: { row: WebhookRow; until: number; secrets: readonly string[] } | null = null;

  constructor(context: AttemptsContext, options: AttemptsOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** What earlier processes have found. */
  resume(works: boolean): void {
    this.#works = works;
  }

  /** Resolves when it has ended, or its turn does not come any more. */
  make(due: Due): Promise<void> {
    const made = this.#inTurn(due).finally(() => this.#underWay.delete(made));
    this.#underWay.add(made);
    return made;
  }

  /** Resolves when none is on its way or waits. */
  async idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  async #inTurn(due: Due): Promise<void> {
    const { places: { working, failing }, runtime: { clock } } = this.#context;
    const { webhook, stopping: signal } = this.#options;
    const { accountId: party, id: lane } = webhook();
    const turn = { party, lane, signal };
    try {
      // It may fail since it began to wait.
      if (this.#works && await working.run(turn, () => this.#whileItWorks(due))) return;
      await failing.run(turn, async () => {
        await this.#request(due);
        if (!this.#works) await sleep(clock, FAILING_REST_MS, signal);
      });
    } catch (error) {
      // Its turn did not come before the stop: the next start makes it.
      if (error !== signal.reason) throw error;
    }
  }

  /** Whether it was made. */
  async #whileItWorks(due: Due): Promise<boolean> {
    if (!this.#works) return false;
    await this.#request(due);
    return true;
  }

  async #request(due: Due): Promise<void> {
    const { webhook, dropping: signal, ended } = this.#options;
    const target = webhook();
    const { url } = target;
    const secrets = () => this.#secretsOf(target);
    const outcome = await attemptDelivery(this.#context, { url, secrets, event: due.event, signal });
    if (outcome.kind === "stopped") return;
    this.#works = outcome.kind === "delivered";
    await ended(due, outcome, target);
  }

  /** Opened once: what signs changes with the row, and with the end of a rotation. */
  #secretsOf(target: WebhookRow): readonly string[] {
    const { seal, runtime } = this.#context;
    const now = runtime.clock.now();
    const until = target.previousSecretUntil ?? Infinity;
    if (this.#opened?.row !== target || now >= this.#opened.until) {
      const secrets = liveSecrets(target, { seal, now });
      this.#opened = { row: target, until: until > now ? until : Infinity, secrets };
    }
    return this.#opened.secrets;
  }
}
