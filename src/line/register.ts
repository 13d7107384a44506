/**
 * The lines of an account as its plan counts them: a line is added by the commit that creates it, and removed as soon
 * as its deletion is requested.
 */
import type { Accounts } from "../account/accounts.ts";
import { KeyedQueue } from "../base/single_flight.ts";
import { notFound, Problem } from "../errors.ts";
import type { Runtime } from "../runtime.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import { type Line, newLine } from "./line.ts";
import { lineKeys } from "./rows.ts";

interface RegisterDeps {
  kv: Kv;
  runtime: Pick<Runtime, "clock" | "ids">;
  accounts: Pick<Accounts, "caller">;
  /** Adds to the commit that creates a line what makes a process take the line up. */
  offer(change: Change, lineId: string): void;
}

interface NewEntry extends Pick<Line, "name" | "pairingPhone" | "proxy"> {
  /** Adds what must be written in the same commit as the line. Called again for each retry of the commit. */
  commitWith?: ((change: Change, line: Line) => void) | undefined;
}

/** A change to commit, and the line as it is after it. */
interface LineChange {
  change: Change;
  result: Line;
}

export class LineRegister {
  readonly #deps: RegisterDeps;
  /**
   * Serializes changes of an account's line count: concurrent ones would conflict, all but
   * one in each round of retries.
   */
  readonly #counting = new KeyedQueue();

  constructor(deps: RegisterDeps) {
    this.#deps = deps;
  }

  /** Creates a line. Throws Problem session_limit_reached if the plan allows no more (checked in the same commit). */
  create(accountId: string, entry: NewEntry): Promise<Line> {
    return this.#counted(accountId, () => this.#creation(accountId, entry));
  }

  /** Commits a change of the line that also removes it from the account's list and count. */
  remove(accountId: string, build: () => Promise<LineChange>): Promise<Line> {
    return this.#counted(accountId, async () => {
      const { change, result } = await build();
      const count = await this.#deps.kv.get(lineKeys.lineCount(accountId));
      change.check(count).set(lineKeys.lineCount(accountId), Math.max(0, (count.value ?? 0) - 1))
        .delete(lineKeys.lineOfAccount(accountId, result.createdAt, result.id));
      return { change, result };
    });
  }

  #counted(accountId: string, build: () => Promise<LineChange>): Promise<Line> {
    return this.#counting.add(accountId, () => retryOnConflict(this.#deps.kv, build));
  }

  async #creation(accountId: string, { commitWith, ...fields }: NewEntry): Promise<LineChange> {
    const { kv, runtime, accounts, offer } = this.#deps;
    const caller = await accounts.caller(accountId);
    if (!caller) throw notFound("account");
    const { name: plan, sessions } = caller.plan;
    const count = await kv.get(lineKeys.lineCount(accountId));
    if ((count.value ?? 0) >= sessions) {
      const allowed = `${sessions} ${sessions === 1 ? "session" : "sessions"}`;
      throw new Problem("session_limit_reached", `The plan "${plan}" allows ${allowed}.`);
    }
    const createdAt = runtime.clock.now();
    const line = newLine({ id: runtime.ids.next("ses"), accountId, createdAt, ...fields });
    const change = new Change().check(count).set(lineKeys.lineCount(accountId), (count.value ?? 0) + 1)
      .checkAbsent(lineKeys.line(line.id)).set(lineKeys.line(line.id), line)
      .set(lineKeys.lineOfAccount(accountId, createdAt, line.id), line.id);
    offer(change, line.id);
    commitWith?.(change, line);
    return { change, result: line };
  }
}
