/**
 * The lane that an account's sends go through: while one commit is written the next sends gather, and share the
 * following commit. Each commit reads the ledger afresh and checks it, so that another process may accept as well.
 */
import { keyReused } from "../account/idempotency.ts";
import { charge, type QuotaLeft, quotaLeft } from "../account/quota.ts";
import { Batcher, type Settled } from "../store/batch.ts";
import { keys } from "../store/keys.ts";
import { Change, StoreError } from "../store/kv.ts";
import type { Accepted, AcceptOptions, SendCommand } from "./accept.ts";
import { publishDraft, removeDraft, writeDraft } from "./bulk_draft.ts";
import { EMPTY_LEDGER, extendLedger, type Ledger, messageIds } from "./ledger.ts";
import type { Message } from "./message.ts";
import { addMessage, commitSized, fitsOneCommit, loadOf } from "./message_rows.ts";

/** What is kept under an Idempotency-Key: which messages were the answer, by history number. */
interface KeptSend {
  first: number;
  count: number;
  remaining: QuotaLeft;
}

/** A commit in the making. */
interface Round {
  readonly change: Change;
  ledger: Ledger;
  /** Sends with an Idempotency-Key that this commit accepts. */
  readonly byKey: Map<string, { fingerprint: string; accepted: Accepted }>;
  readonly lines: Set<string>;
}

/** How often the ledger may be found changed by another process before the sends are given up. */
const TRIES = 20;

export class AcceptLane {
  readonly #accountId: string;
  readonly #options: AcceptOptions;
  readonly #batcher: Batcher<SendCommand, Accepted>;
  /** A bulk whose publishing failed: its rows must go before their positions are given out again. */
  #draft: string | null = null;

  constructor(accountId: string, options: AcceptOptions) {
    this.#accountId = accountId;
    this.#options = options;
    this.#batcher = new Batcher((commands) => this.#commit(commands), { take: howManyFit });
  }

  accept(command: SendCommand): Promise<Accepted> {
    return this.#batcher.add(command);
  }

  /** Outcomes in the order of the commands. Throws StoreError: then none was accepted, as far as the store knows. */
  async #commit(commands: readonly SendCommand[]): Promise<Settled<Accepted>[]> {
    for (let attempt = 0; attempt < TRIES; attempt++) {
      await this.#removeDraft();
      const slot = await this.#options.kv.get(keys.ledger(this.#accountId));
      const round: Round = {
        change: new Change().check(slot),
        ledger: slot.value ?? EMPTY_LEDGER,
        byKey: new Map(),
        lines: new Set(),
      };
      const outcomes = await this.#admitAll(commands, round);
      if (await this.#write(round)) return outcomes;
    }
    throw new StoreError("unavailable", `gave up after ${TRIES} conflicting commits`);
  }

  async #write(round: Round): Promise<boolean> {
    if (round.lines.size === 0) return true;
    round.change.set(keys.ledger(this.#accountId), round.ledger);
    if (!await this.#options.kv.commit(round.change)) return false;
    this.#draft = null;
    for (const line of round.lines) this.#options.queued(line);
    return true;
  }

  async #admitAll(commands: readonly SendCommand[], round: Round): Promise<Settled<Accepted>[]> {
    const { ledger } = round;
    // After the ledger was read: whoever keeps an answer from now on changes the ledger too, and our check fails.
    const kept = await Promise.allSettled(commands.map((command) => this.#keptAnswer(command, ledger)));
    const outcomes: Settled<Accepted>[] = [];
    for (const [i, command] of commands.entries()) {
      const before = kept[i]!;
      if (before.status === "rejected") {
        outcomes.push(before);
        continue;
      }
      const [outcome] = await Promise.allSettled([before.value ?? this.#admit(command, round)]);
      outcomes.push(outcome);
    }
    return outcomes;
  }

  /** Adds one send to the round. Throws Problem quota_exceeded, idempotency_key_reused; the round is then as before. */
  async #admit(command: SendCommand, round: Round): Promise<Accepted> {
    const { caller: { plan }, idempotency } = command;
    const twin = idempotency && round.byKey.get(idempotency.key);
    if (twin) {
      if (twin.fingerprint !== idempotency.fingerprint) throw keyReused();
      return { ...twin.accepted, repeated: true };
    }

    const now = this.#options.runtime.clock.now();
    const usage = charge(round.ledger.usage, command.items.length, { plan, now });
    const messages = this.#messages(command, round.ledger.messages + 1, now);
    await this.#addRows(round.change, command, messages);
    round.ledger = extendLedger(
      round.change,
      { accountId: this.#accountId, ledger: round.ledger },
      { messageIds: messages.map((message) => message.id), usage },
    );
    round.lines.add(command.line.id);

    const remaining = quotaLeft(plan, usage);
    const accepted = { bulkId: messages[0]!.bulkId, repeated: false, messages: messages.map(answerOf), remaining };
    if (idempotency) {
      const answer: KeptSend = { first: messages[0]!.historyNumber, count: messages.length, remaining };
      this.#options.idempotency.keep(round.change, { accountId: this.#accountId, ...idempotency }, answer);
      round.byKey.set(idempotency.key, { fingerprint: idempotency.fingerprint, accepted });
    }
    return accepted;
  }

  #messages(command: SendCommand, first: number, now: number): Message[] {
    const { ids } = this.#options.runtime;
    const bulkId = command.bulk ? ids.next("blk") : null;
    return command.items.map(({ to, content }, i) => ({
      id: ids.next("msg"),
      jobId: ids.next("job"),
      accountId: this.#accountId,
      sessionId: command.line.id,
      networkId: ids.network(),
      // A line belongs to one account, so the account's numbers are an order for each of its lines.
      position: first + i,
      historyNumber: first + i,
      to,
      content,
      bulkId,
      status: "queued",
      attempts: 0,
      error: null,
      createdAt: now,
      expiresAt: now + command.ttlMs,
      sentAt: null,
      deliveredAt: null,
      readAt: null,
    }));
  }

  async #addRows(change: Change, command: SendCommand, messages: readonly Message[]): Promise<void> {
    const { kv } = this.#options;
    const bulkId = messages[0]?.bulkId ?? null;
    if (bulkId !== null && !fitsOneCommit(loadOfCommand(command))) {
      this.#draft = bulkId;
      publishDraft(change, await writeDraft(kv, bulkId, messages));
    } else {
      for (const message of messages) addMessage(change, message);
    }
    if (bulkId !== null) {
      const { accountId, sessionId, createdAt } = messages[0]!;
      change.set(keys.bulk(bulkId), { accountId, sessionId, total: messages.length, createdAt });
    }
  }

  async #removeDraft(): Promise<void> {
    if (this.#draft !== null) await removeDraft(this.#options.kv, this.#draft);
    this.#draft = null;
  }

  /** The first answer to a repeated send, or null. Throws Problem idempotency_key_reused. */
  async #keptAnswer(command: SendCommand, ledger: Ledger): Promise<Accepted | null> {
    if (!command.idempotency) return null;
    const { kv, idempotency } = this.#options;
    const accountId = this.#accountId;
    const kept = await idempotency.find<KeptSend>({ accountId, ...command.idempotency });
    if (kept === null) return null;
    const numbers = Array.from({ length: kept.count }, (_, i) => kept.first + i);
    const ids = await messageIds(kv, { accountId, ledger }, numbers);
    const slots = await kv.getMany(ids.map((id) => keys.message(id)));
    const messages = slots.map((slot) => slot.value).filter((message) => message !== null);
    const bulkId = messages[0]?.bulkId ?? null;
    return { bulkId, repeated: true, messages: messages.map(answerOf), remaining: kept.remaining };
  }
}

/** The acknowledgement of a send says `queued` whatever became of the message since (spec). */
function answerOf({ id, jobId, to }: Message): Accepted["messages"][number] {
  return { id, jobId, to, status: "queued" };
}

function loadOfCommand(command: SendCommand) {
  return loadOf(command.items.map((item) => item.content));
}

function howManyFit(waiting: readonly SendCommand[]): number {
  const [first = []] = commitSized(waiting, loadOfCommand);
  return first.length;
}
