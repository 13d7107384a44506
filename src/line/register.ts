/**
 * The lines of an account as its plan counts them: one is entered by the commit that makes it, and leaves as soon as its
 * deletion is asked for.
 */
import type { Accounts } from "../account/accounts.ts";
import { KeyedQueue } from "../base/keyed_queue.ts";
import { notFound, Problem } from "../errors.ts";
import type { Runtime } from "../runtime.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import { type Line, newLine } from "./line.ts";
import { lineKeys } from "./rows.ts";

interface RegisterDeps {
  kv: Kv;
  runtime: Pick<Runtime, "clock" | "ids">;
  accounts: Pick<Accounts, "caller">;
  /** Adds to the commit that makes a line what lets it be taken up. */
  offer(change: Change, lineId: string): void;
}

interface NewEntry extends Pick<Line, "name" | "pairingPhone" | "proxy"> {
  /** Adds what is to be written with the line or not at all; called anew for each try. */
  commitWith?: ((change: Change, line: Line) => void) | undefined;
}

/** A commit in the making, and the line as it is then. */
interface LineChange {
  change: Change;
  result: Line;
}

export class LineRegister {
  readonly #deps: RegisterDeps;
  /** Changes of an account's count of lines: at once, each try would let one through and all others fail. */
  readonly #counting = new KeyedQueue();

  constructor(deps: RegisterDeps) {
    this.#deps = deps;
  }

  /** Throws Problem session_limit_reached when the plan allows no more (checked inside the commit). */
  create(accountId: string, entry: NewEntry): Promise<Line> {
    return this.#counted(accountId, () => this.#creation(accountId, entry));
  }

  /** Commits a change of the line, which leaves the account's list and count with it. */
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
