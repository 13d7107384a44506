/**
 * The delivery attempts of one webhook, scheduled fairly among accounts. Endpoints whose last attempt failed share
 * separate places, so that hanging or failing endpoints never slow down working ones.
 */
import type { FairSemaphore } from "../base/fair_semaphore.ts";
import { retry } from "../base/retry.ts";
import type { LoggedEvent } from "../event/event.ts";
import { orderOf } from "../event/event_log.ts";
import { eventKeys } from "../event/rows.ts";
import { type Runtime, sleep } from "../runtime.ts";
import { type Kv, STORE_PAUSE_MS } from "../store/kv.ts";
import type { Seal } from "../store/seal.ts";
import type { AttemptOutcome, Target } from "./target.ts";
import type { Formats } from "./format.ts";
import { type Delivery, type Opened, opened, type WebhookRow } from "./webhook.ts";

/** Pause after a failed attempt, so that an endpoint that refuses at once is not called in a tight loop. */
const FAILING_REST_MS = 250;
/** An event read longer ago is looked up again before it is sent: its person may have been erased since. */
const FRESH_MS = 5_000;

/** Places for the attempts of all webhooks, shared by the accounts. */
interface Places {
  working: FairSemaphore;
  failing: FairSemaphore;
}

export interface AttemptsContext {
  kv: Kv;
  target: Target;
  seal: Seal;
  runtime: Runtime;
  places: Places;
  formats: Formats;
}

/** An attempt that has ended and has not been written yet. */
export interface Ended {
  event: LoggedEvent;
  /** The delivery before this attempt; null for a first attempt. */
  previous: Delivery | null;
  /** Number of the attempt in its series, from 1. */
  number: number;
  /** Time in the key of the due-attempt row that it came from, Unix ms; null for an attempt straight from the log. */
  dueAt: number | null;
  outcome: Exclude<AttemptOutcome, { kind: "stopped" }>;
}

/** An attempt that is due. */
export interface Due extends Omit<Ended, "outcome"> {
  /** When the event was read, Unix ms. */
  readAt: number;
}

/**
 * What became of a due attempt. `put off`: the webhook was paused, or stopped, before its turn. `gone`: the event was
 * removed before its turn.
 */
export type Fate = "made" | "put off" | "gone";

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
  readonly #underWay = new Set<Promise<Fate>>();
  /** Whether the last attempt was a success. */
  #works = true;
  #opened: { row: WebhookRow; until: number; value: Opened } | null = null;

  constructor(context: AttemptsContext, options: AttemptsOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** Sets whether the endpoint worked, as recorded by earlier processes. */
  resume(works: boolean): void {
    this.#works = works;
  }

  /** Makes the attempt when it is its turn, and resolves when it has ended. */
  make(due: Due): Promise<Fate> {
    const made = this.#inTurn(due).finally(() => this.#underWay.delete(made));
    this.#underWay.add(made);
    return made;
  }

  /** Resolves when no attempt is in progress or waiting. */
  async idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  async #inTurn(due: Due): Promise<Fate> {
    const { places: { working, failing }, runtime: { clock } } = this.#context;
    const { webhook, stopping: signal } = this.#options;
    const { accountId: tenant, id: lane } = webhook();
    const turn = { tenant, lane, signal };
    try {
      // The endpoint may have failed while this attempt waited.
      const fate = this.#works
        ? await working.run(turn, async () => this.#works ? await this.#request(due) : null)
        : null;
      if (fate !== null) return fate;
      return await failing.run(turn, async () => {
        const fate = await this.#request(due);
        if (fate === "made" && !this.#works) await sleep(clock, FAILING_REST_MS, signal);
        return fate;
      });
    } catch (error) {
      if (!signal.aborted) throw error;
      return "put off";
    }
  }

  async #request(due: Due): Promise<Fate> {
    const { webhook, stopping, dropping: signal, ended } = this.#options;
    const { kv, formats, target, runtime: { clock } } = this.#context;
    const patience = { clock, pauseMs: STORE_PAUSE_MS, signal: stopping };
    if (clock.now() - due.readAt > FRESH_MS) {
      const key = eventKeys.event(due.event.accountId, orderOf(due.event.id));
      const { value } = await retry(() => kv.get(key), patience);
      if (value === null) return "gone";
    }
    const row = webhook();
    if (!row.active) return "put off";
    const { event } = due;
    const format = await formats[row.format ?? "paloma"]();
    const body = await retry(() => format.bodyOf(event), patience);
    const outcome = await target.attempt({ url: row.url, open: () => this.#open(row), event, body, format, signal });
    if (outcome.kind === "stopped") return "put off";
    this.#works = outcome.kind === "delivered";
    await ended(due, outcome, row);
    return "made";
  }

  /** Returns what requests carry, unsealed once until the row changes or a rotation ends. */
  #open(row: WebhookRow): Opened {
    const { seal, runtime } = this.#context;
    const now = runtime.clock.now();
    const until = row.previousSecretUntil ?? Infinity;
    if (this.#opened?.row !== row || now >= this.#opened.until) {
      const value = opened(row, { seal, now });
      this.#opened = { row, until: until > now ? until : Infinity, value };
    }
    return this.#opened.value;
  }
}
