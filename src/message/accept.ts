/**
 * Accepts sends by group commit: while one commit of an account is written, its next sends gather and share the
 * following one; the store writes those of several accounts in one flush. With warm caches a send reads nothing. Its commit checks the rows of
 * ledger, line and API key instead, so that changes by another process take effect at once
 * (docs/decisions/0012-sends-read-nothing.md).
 */
import { LRUCache } from "lru-cache";
import { keyUnknown } from "../account/api_key.ts";
import { atMost } from "../base/at_most.ts";
import { Problem } from "../errors.ts";
import { sleep } from "../runtime.ts";
import { Change, type Kv, type Slot, untilCurrent } from "../store/kv.ts";
import { Batcher, type Settled } from "../base/batcher.ts";
import { AcceptCommit, type AcceptOptions, Conflict, loadOfCommand } from "./accept_commit.ts";
import {
  type Accepted,
  commitSized,
  LineChanged,
  type Precondition,
  preconditionsOf,
  type SendCommand,
} from "./send_command.ts";
import { EMPTY_LEDGER } from "./history/ledger.ts";
import { type Ledger, messageKeys } from "./rows.ts";
import { removeStaged } from "./bulk.ts";

/** How long a process that lost twice leaves the account to the other process: the time of several of its commits. */
const GIVE_WAY_MS = [60, 180] as const;
/** Number of accounts whose ledgers are cached; the account that has sent nothing for longest is evicted. */
const MOST_ACCOUNTS = 10_000;
/** About how many sends are parsed and answered per millisecond. */
const SENDS_A_MS = 12;
/** Checks per commit that are needed for the ledger, a staged bulk and the sequence of events. */
const OTHER_CHECKS = 3;

/**
 * Accepts a send. Throws Problem quota_exceeded (with `remaining`), recipient_opted_out, validation_failed,
 * idempotency_key_reused, api_key_invalid; LineChanged; StoreError.
 */
export type Accept = (command: SendCommand) => Promise<Accepted>;

export function makeAccept(options: AcceptOptions): Accept {
  const accounts = new LRUCache<string, AccountSends>({
    ...atMost(MOST_ACCOUNTS),
    memoMethod: (accountId) => new AccountSends(accountId, options),
  });
  return (command) => accounts.memo(command.caller.account.id).accept(command);
}

/** The sends of one account: one commit at a time. */
class AccountSends {
  readonly #accountId: string;
  readonly #options: AcceptOptions;
  readonly #batcher: Batcher<SendCommand, Accepted>;
  /** The ledger as of the last commit; null if it must be read. */
  #ledger: Slot<Ledger> | null = null;
  /** The id of a bulk that was staged but not accepted; its rows are removed before the next commit. */
  #staged: string | null = null;
  /** Of the last commit: its sends, which are answered now, so that about as many follow; and how long it took. */
  #last = { sends: 0, tookMs: 0 };

  constructor(accountId: string, options: AcceptOptions) {
    this.#accountId = accountId;
    this.#options = options;
    this.#batcher = new Batcher((commands) => this.#commit(commands), {
      take: (waiting) => howManyFit(waiting.slice(0, this.#share(waiting.length)), options.kv),
    });
  }

  /**
   * Returns how many of the waiting sends to write next: about half of those under way, so that one half is parsed while
   * the other is written; all at once, they would wait for the disk first and then for the processor. With a slower disk
   * it is more than half.
   */
  #share(waiting: number): number {
    const { sends, tookMs } = this.#last;
    return Math.max(Math.ceil((waiting + sends) / 2), SENDS_A_MS * Math.max(1, tookMs));
  }

  accept(command: SendCommand): Promise<Accepted> {
    return this.#batcher.add(command);
  }

  /**
   * Resolves to the outcomes, in the order of the commands. Throws StoreError: then none was
   * accepted, as far as is known.
   */
  async #commit(commands: readonly SendCommand[]): Promise<Settled<Accepted>[]> {
    const { kv, runtime: { clock } } = this.#options;
    const begun = clock.now();
    let changed: ReadonlySet<Precondition> = new Set();
    const outcomes = await untilCurrent(async (tried) => {
      try {
        return await this.#attempt(commands, changed);
      } catch (error) {
        if (!(error instanceof Conflict)) throw error;
      }
      if (tried > 0) await this.#takeTurns();
      changed = await changedPreconditions(kv, commands);
      return undefined;
    });
    this.#last = { sends: commands.length, tookMs: clock.now() - begun };
    return outcomes;
  }

  /**
   * Resolves contention with another process that accepts sends of the same account without a pause: each commit of one
   * conflicts with those of the other. The slower process waits for a while, and then rewrites the unchanged ledger,
   * which is quick. From there it goes on, and the other process is now the slower one.
   */
  async #takeTurns(): Promise<void> {
    const { kv, runtime: { clock, random } } = this.#options;
    await sleep(clock, random.between(...GIVE_WAY_MS));
    this.#ledger = await untilCurrent(async () => {
      const slot = await kv.get(messageKeys.ledger(this.#accountId));
      const value = slot.value ?? EMPTY_LEDGER;
      const version = await kv.commit(new Change().check(slot).set(slot.key, value));
      return version === null ? undefined : { key: slot.key, value, version };
    });
  }

  /** Like `#commit`, but throws Conflict if a cached row had changed. */
  async #attempt(
    commands: readonly SendCommand[],
    changed: ReadonlySet<Precondition>,
  ): Promise<Settled<Accepted>[]> {
    const { kv } = this.#options;
    if (this.#staged !== null) await removeStaged(kv, this.#staged);
    this.#staged = null;
    const ledger = this.#ledger ?? await kv.get(messageKeys.ledger(this.#accountId));
    this.#ledger = null;
    const commit = new AcceptCommit(ledger, { accountId: this.#accountId, options: this.#options });
    try {
      const outcomes = await addAll(commit, commands, changed);
      this.#ledger = await commit.write();
      return outcomes;
    } finally {
      this.#staged = commit.staged;
    }
  }
}

/** Returns the preconditions of the commands that no longer hold. */
async function changedPreconditions(kv: Kv, commands: readonly SendCommand[]): Promise<Set<Precondition>> {
  const rows = [...new Set(commands.flatMap(preconditionsOf))];
  const slots = await kv.getMany(rows.map((row) => row.key));
  return new Set(rows.filter((row, i) => slots[i]!.version !== row.version));
}

/**
 * Adds the commands to the commit. Problem and LineChanged are outcomes of their commands;
 * other errors fail the commit.
 */
async function addAll(
  commit: AcceptCommit,
  commands: readonly SendCommand[],
  changed: ReadonlySet<Precondition>,
): Promise<Settled<Accepted>[]> {
  const replays = commands.map(({ idempotency }) => idempotency && commit.replay(idempotency));
  // A rejection is thrown below, when its command is reached.
  await Promise.allSettled(replays.filter((replay) => replay !== null));
  const outcomes: Settled<Accepted>[] = [];
  for (const [i, command] of commands.entries()) {
    try {
      const replay = replays[i] && await replays[i];
      const { caller: { keyRow }, line } = command;
      if (!replay && keyRow && changed.has(keyRow)) throw keyUnknown();
      if (!replay && changed.has(line.row)) throw new LineChanged();
      outcomes.push({ status: "fulfilled", value: replay ?? await commit.add(command) });
    } catch (reason) {
      if (!(reason instanceof Problem || reason instanceof LineChanged)) throw reason;
      outcomes.push({ status: "rejected", reason });
    }
  }
  return outcomes;
}

/** Returns how many of the waiting sends, oldest first, fit into one commit. */
function howManyFit(waiting: readonly SendCommand[], { mostChecks }: Kv): number {
  const [first = []] = commitSized(waiting, loadOfCommand);
  const preconditions = new Set<Precondition>();
  const end = first.findIndex((command) => {
    for (const row of preconditionsOf(command)) preconditions.add(row);
    return preconditions.size > mostChecks - OTHER_CHECKS;
  });
  return end < 0 ? first.length : end;
}
