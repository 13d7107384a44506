/**
 * The lane that an account's sends go through: while one commit is written the next sends gather, and share the
 * following commit. Each commit checks the ledger, so that another process may accept as well.
 */
import { Problem } from "../errors.ts";
import { Batcher, type Settled } from "../store/batch.ts";
import { keys } from "../store/keys.ts";
import { type Slot, StoreError } from "../store/kv.ts";
import type { Accepted, AcceptOptions, SendCommand } from "./accept.ts";
import { AcceptRound, loadOfCommand } from "./accept_round.ts";
import { removeDraft } from "./bulk_draft.ts";
import type { Ledger } from "./ledger.ts";
import { commitSized } from "./message_rows.ts";

/** How often the ledger may be found changed by another process before the sends are given up. */
const TRIES = 20;
/**
 * Sends that a commit takes for each millisecond that the last one took to write: about as many as are parsed and
 * answered meanwhile. If one took all, everybody would wait for the disk at one time and for the processor at another.
 */
const SENDS_A_MS = 32;

export class AcceptLane {
  readonly #accountId: string;
  readonly #options: AcceptOptions;
  readonly #batcher: Batcher<SendCommand, Accepted>;
  #lastTookMs = 0;
  /** The ledger as the last round left it; null when it must be read. */
  #ledger: Slot<Ledger> | null = null;
  /** A bulk that was written in part and then not accepted: its rows are removed before the next round. */
  #draft: string | null = null;

  constructor(accountId: string, options: AcceptOptions) {
    this.#accountId = accountId;
    this.#options = options;
    this.#batcher = new Batcher((commands) => this.#commit(commands), {
      take: (waiting) => Math.min(howManyFit(waiting), SENDS_A_MS * Math.max(1, this.#lastTookMs)),
    });
  }

  accept(command: SendCommand): Promise<Accepted> {
    return this.#batcher.add(command);
  }

  /** Outcomes in the order of the commands. Throws StoreError: then none was accepted, as far as the store knows. */
  async #commit(commands: readonly SendCommand[]): Promise<Settled<Accepted>[]> {
    const { kv, runtime } = this.#options;
    for (let attempt = 0; attempt < TRIES; attempt++) {
      await this.#removeDraft();
      const ledger = this.#ledger ?? await kv.get(keys.ledger(this.#accountId));
      this.#ledger = null;
      const round = new AcceptRound(ledger, { accountId: this.#accountId, options: this.#options });
      try {
        const outcomes = await admitAll(round, commands);
        const begun = runtime.clock.now();
        this.#ledger = outcomes && await round.write();
        this.#lastTookMs = runtime.clock.now() - begun;
        if (this.#ledger) return outcomes!;
      } finally {
        this.#draft = round.draft;
      }
    }
    throw new StoreError("unavailable", `gave up after ${TRIES} conflicting commits`);
  }

  async #removeDraft(): Promise<void> {
    if (this.#draft !== null) await removeDraft(this.#options.kv, this.#draft);
    this.#draft = null;
  }
}

/** Problems are outcomes of their commands, anything else fails the round; null when the round turned out to be void. */
async function admitAll(round: AcceptRound, commands: readonly SendCommand[]): Promise<Settled<Accepted>[] | null> {
  const kept = await Promise.allSettled(commands.map((command) => round.keptAnswer(command)));
  const outcomes: Settled<Accepted>[] = [];
  for (const [i, command] of commands.entries()) {
    const first = kept[i]!;
    try {
      if (first.status === "rejected") throw first.reason;
      const accepted = first.value ?? await round.admit(command);
      if (accepted === null) return null;
      outcomes.push({ status: "fulfilled", value: accepted });
    } catch (reason) {
      if (!(reason instanceof Problem)) throw reason;
      outcomes.push({ status: "rejected", reason });
    }
  }
  return outcomes;
}

function howManyFit(waiting: readonly SendCommand[]): number {
  const [first = []] = commitSized(waiting, loadOfCommand);
  return first.length;
}
