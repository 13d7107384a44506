/**
 * The lane that an account's sends go through: while one commit is written the next sends gather, and share the
 * following commit. Nothing is read for a send that could be remembered: its commit checks the ledger, the line's row
 * and the key's, so that what another process does counts at once (docs/decisions/0012-sends-read-nothing.md).
 */
import { keyUnknown } from "../account/api_key.ts";
import { Problem } from "../errors.ts";
import { Batcher, type Settled } from "../store/layers/batch.ts";
import { type Ledger, messageKeys } from "./rows.ts";
import { type Kv, type Slot, StoreError } from "../store/kv.ts";
import { type Accepted, type AcceptOptions, LineChanged, type SendCommand } from "./accept.ts";
import { AcceptRound, loadOfCommand, type RestRow, restsOf } from "./accept_round.ts";
import { removeDraft } from "./bulk_draft.ts";
import { commitSized } from "./message_rows.ts";

/** How often the ledger may be found changed by another process before the sends are given up. */
const TRIES = 20;
/** Of the ten checks of a commit: the others are for the ledger and a bulk's draft. */
const MOST_RESTS = 8;
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
    let changed: ReadonlySet<RestRow> = new Set();
    for (let attempt = 0; attempt < TRIES; attempt++) {
      await this.#removeDraft();
      const ledger = this.#ledger ?? await kv.get(messageKeys.ledger(this.#accountId));
      this.#ledger = null;
      const round = new AcceptRound(ledger, { accountId: this.#accountId, options: this.#options });
      try {
        const outcomes = await admitAll(round, commands, changed);
        const begun = runtime.clock.now();
        this.#ledger = outcomes && await round.write();
        this.#lastTookMs = runtime.clock.now() - begun;
        if (this.#ledger) return outcomes!;
        changed = await changedRests(kv, commands);
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

/** Of the rows that the commands rest on, those that are not as they were. */
async function changedRests(kv: Kv, commands: readonly SendCommand[]): Promise<Set<RestRow>> {
  const rows = [...new Set(commands.flatMap(restsOf))];
  const slots = await kv.getMany(rows.map((row) => row.key));
  return new Set(rows.filter((row, i) => slots[i]!.version !== row.version));
}

/**
 * Problems, and a line that has changed, are outcomes of their commands, anything else fails the round; null when the
 * round turned out to be void.
 */
async function admitAll(
  round: AcceptRound,
  commands: readonly SendCommand[],
  changed: ReadonlySet<RestRow>,
): Promise<Settled<Accepted>[] | null> {
  const kept = await Promise.allSettled(commands.map((command) => round.keptAnswer(command)));
  const outcomes: Settled<Accepted>[] = [];
  for (const [i, command] of commands.entries()) {
    const first = kept[i]!;
    try {
      if (first.status === "rejected") throw first.reason;
      const accepted = first.value ?? await admitUnchanged(round, command, changed);
      if (accepted === null) return null;
      outcomes.push({ status: "fulfilled", value: accepted });
    } catch (reason) {
      if (!(reason instanceof Problem || reason instanceof LineChanged)) throw reason;
      outcomes.push({ status: "rejected", reason });
    }
  }
  return outcomes;
}

async function admitUnchanged(
  round: AcceptRound,
  command: SendCommand,
  changed: ReadonlySet<RestRow>,
): Promise<Accepted | null> {
  const { caller: { keyRow }, line } = command;
  if (keyRow && changed.has(keyRow)) throw keyUnknown();
  if (changed.has(line.row)) throw new LineChanged();
  return await round.admit(command);
}

function howManyFit(waiting: readonly SendCommand[]): number {
  const [first = []] = commitSized(waiting, loadOfCommand);
  const rests = new Set<RestRow>();
  const end = first.findIndex((command) => {
    for (const row of restsOf(command)) rests.add(row);
    return rests.size > MOST_RESTS;
  });
  return end < 0 ? first.length : end;
}
