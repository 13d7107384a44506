/**
 * The delivery attempts of one webhook, scheduled fairly among accounts. Endpoints whose last attempt failed share
 * separate places, so that hanging or failing endpoints never slow down working ones.
 */
import type { FairSemaphore } from "../base/fair_semaphore.ts";
import type { SafeFetch } from "../egress/safe_fetch.ts";
import { type Runtime, sleep } from "../runtime.ts";
import type { Seal } from "../store/seal.ts";
import { attemptDelivery } from "./delivery.ts";
import type { Ended } from "./delivery_writer.ts";
import { liveSecrets, type WebhookRow } from "./webhook.ts";

/** Pause after a failed attempt, so that an endpoint that refuses at once is not called in a tight loop. */
const FAILING_REST_MS = 250;

/** Places for the attempts of all webhooks, shared by the accounts. */
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
  /** Called after an attempt, with the webhook's row that was used for it. */
  ended(due: Due, outcome: Ended["outcome"], target: WebhookRow): Promise<void>;
  /** Aborts waiting attempts. */
  stopping: AbortSignal;
  /** Aborts attempts in progress. */
  dropping: AbortSignal;
}

export class Attempts {
  readonly #context: AttemptsContext;
  readonly #options: AttemptsOptions;
  /** Attempts in progress or waiting for their turn. */
  readonly #underWay = new Set<Promise<void>>();
  /** Whether the last attempt was a success. */
  #works = true;
  #opened: { row: WebhookRow; until: number; secrets: readonly string[] } | null = null;

  constructor(context: AttemptsContext, options: AttemptsOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** Sets whether the endpoint worked, as recorded by earlier processes. */
  resume(works: boolean): void {
    this.#works = works;
  }

  /** Makes the attempt when it is its turn. Resolves when it has ended, or was aborted before its turn. */
  make(due: Due): Promise<void> {
    const made = this.#inTurn(due).finally(() => this.#underWay.delete(made));
    this.#underWay.add(made);
    return made;
  }

  /** Resolves when no attempt is in progress or waiting. */
  async idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  async #inTurn(due: Due): Promise<void> {
    const { places: { working, failing }, runtime: { clock } } = this.#context;
    const { webhook, stopping: signal } = this.#options;
    const { accountId: party, id: lane } = webhook();
    const turn = { party, lane, signal };
    try {
      // The endpoint may have failed while this attempt waited.
      if (this.#works && await working.run(turn, () => this.#whileItWorks(due))) return;
      await failing.run(turn, async () => {
        await this.#request(due);
        if (!this.#works) await sleep(clock, FAILING_REST_MS, signal);
      });
    } catch (error) {
      // Stopped before its turn: the next start makes the attempt.
      if (error !== signal.reason) throw error;
    }
  }

  /** Makes the attempt if the endpoint still works; resolves to whether it did. */
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

  /** Returns the signing secrets, unsealed once until the row changes or a rotation ends. */
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
