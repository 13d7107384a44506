/** One commit of accepted sends in the making: it rests on the ledger as it was read, and is void once that changed. */
import { keyReused } from "../account/idempotency.ts";
import { charge, quotaLeft } from "../account/quota.ts";
import { type Ledger, messageKeys } from "./rows.ts";
import { nameOfKey } from "../store/key_name.ts";
import { Change, type Slot } from "../store/kv.ts";
import type { Accepted, AcceptOptions, SendCommand } from "./accept.ts";
import { beginDraft, publishDraft, writeDraft } from "./bulk_draft.ts";
import { answerOf, type KeptSend, readFirstAnswer } from "./first_answer.ts";
import { EMPTY_LEDGER, extendLedger } from "./history/ledger.ts";
import type { Message } from "./message.ts";
import { addMessages, fitsOneCommit, type Load, loadOf } from "./message_rows.ts";

export class AcceptRound {
  readonly #accountId: string;
  readonly #options: AcceptOptions;
  /** The row that the commit checks. */
  #slot: Slot<Ledger>;
  /** The ledger with the sends of this round. */
  #ledger: Ledger;
  readonly #change = new Change();
  /** What this commit writes of messages; those of a draft are written ahead. */
  readonly #admitted: Message[] = [];
  readonly #lines = new Set<string>();
  /** Rows that the admitted sends rest on, by name and version: of their lines, and of keys that were remembered. */
  readonly #rests = new Map<string, RestRow>();
  readonly #byKey = new Map<string, { fingerprint: string; accepted: Accepted }>();
  /** A bulk of this round that is written in part and not published; null when there is none. */
  draft: string | null = null;

  /** `slot`: the ledger as this process last saw it. Another may have changed it since: then the round is void. */
  constructor(slot: Slot<Ledger>, { accountId, options }: { accountId: string; options: AcceptOptions }) {
    this.#accountId = accountId;
    this.#options = options;
    this.#slot = slot;
    this.#ledger = slot.value ?? EMPTY_LEDGER;
  }

  /**
   * The first answer to a repeated send, or null. Throws Problem idempotency_key_reused. It reads after the ledger was
   * read: whoever keeps an answer from then on changes the ledger too, and the round is void.
   */
  async keptAnswer(command: SendCommand): Promise<Accepted | null> {
    if (!command.idempotency) return null;
    return await readFirstAnswer(this.#options, { accountId: this.#accountId, ...command.idempotency });
  }

  /**
   * Adds one send; null when the round turned out to be void. Throws Problem quota_exceeded, idempotency_key_reused;
   * the round is then as before.
   */
  async admit(command: SendCommand): Promise<Accepted | null> {
    const { caller: { plan }, items, idempotency } = command;
    const twin = idempotency && this.#byKey.get(idempotency.key);
    if (twin) {
      if (twin.fingerprint !== idempotency.fingerprint) throw keyReused();
      return { ...twin.accepted, repeated: true };
    }

    const usage = charge(this.#ledger.usage, items.length, { plan, now: this.#options.runtime.clock.now() });
    const messages = this.#messages(command);
    const bulkId = messages[0]!.bulkId;
    if (fitsOneCommit(loadOfCommand(command))) {
      this.#admitted.push(...messages);
    } else if (!await this.#addDraft(messages)) {
      return null;
    }
    if (bulkId !== null) {
      const { accountId, sessionId, createdAt } = messages[0]!;
      this.#change.set(messageKeys.bulk(bulkId), { accountId, sessionId, total: messages.length, createdAt });
    }
    this.#ledger = extendLedger(
      this.#change,
      { accountId: this.#accountId, ledger: this.#ledger },
      { messages, usage },
    );
    this.#lines.add(command.line.id);
    for (const row of restsOf(command)) this.#rests.set(`${row.version} ${nameOfKey(row.key)}`, row);

    const remaining = quotaLeft(plan, usage);
    const accepted = { bulkId, repeated: false, messages: messages.map(answerOf), remaining };
    if (idempotency) {
      const answer: KeptSend = { first: messages[0]!.historyNumber, count: messages.length, remaining };
      this.#options.idempotency.keep(this.#change, { accountId: this.#accountId, ...idempotency }, answer);
      this.#byKey.set(idempotency.key, { fingerprint: idempotency.fingerprint, accepted });
    }
    return accepted;
  }

  /** Writes what was admitted. The ledger as it stands then, or null when the round is void and nothing was written. */
  async write(): Promise<Slot<Ledger> | null> {
    if (this.#lines.size === 0) return this.#slot;
    addMessages(this.#change, this.#admitted);
    for (const row of this.#rests.values()) this.#change.check(row);
    const { key } = this.#slot;
    const version = await this.#options.kv.commit(this.#change.check(this.#slot).set(key, this.#ledger));
    if (version === null) return null;
    this.draft = null;
    for (const line of this.#lines) this.#options.queued(line);
    return { key, value: this.#ledger, version };
  }

  /** The messages of a send, at the next places of the account. */
  #messages({ items, line, bulk, ttlMs }: SendCommand): Message[] {
    const { ids, clock } = this.#options.runtime;
    const now = clock.now();
    const bulkId = bulk ? ids.next("blk") : null;
    return items.map(({ to, content }, i) => ({
      ...jobIds(ids.next("msg")),
      accountId: this.#accountId,
      sessionId: line.id,
      networkId: ids.network(),
      position: this.#ledger.lastPosition + 1 + i,
      historyNumber: this.#ledger.messages + 1 + i,
      to,
      content,
      bulkId,
      status: "queued",
      attempts: 0,
      error: null,
      createdAt: now,
      expiresAt: now + ttlMs,
      sentAt: null,
      deliveredAt: null,
      readAt: null,
    }));
  }

  /**
   * Writes a bulk that is too large for one commit ahead, as a draft that this round publishes. Its positions are
   * reserved first, so that nobody else's message can stand at one of them, whatever becomes of the draft.
   */
  async #addDraft(messages: readonly Message[]): Promise<boolean> {
    const { kv } = this.#options;
    const bulkId = messages[0]!.bulkId;
    if (bulkId === null) throw new Error("only a bulk may be larger than a commit");
    const reserved: Ledger = { ...this.#ledger, lastPosition: messages.at(-1)!.position };
    const key = messageKeys.ledger(this.#accountId);
    const reserve = new Change().check(this.#slot).set(key, reserved);
    beginDraft(reserve, bulkId, messages);
    if (!await kv.commit(reserve)) return false;
    this.draft = bulkId;
    this.#slot = await kv.get(key);
    // A draft is alone in its round, so the ledger is as it was read; unless another process was faster.
    if (this.#slot.value?.messages !== reserved.messages) return false;
    this.#ledger = this.#slot.value;
    publishDraft(this.#change, await writeDraft(kv, bulkId, messages));
    return true;
  }
}

/** The ids of a message and of its place in the queue, which differ by their prefix alone. */
function jobIds(id: string): Pick<Message, "id" | "jobId"> {
  return { id, jobId: id.replace("msg_", "job_") };
}

/** A row of which only matters that it is as it was. */
export type RestRow = Pick<Slot<unknown>, "key" | "version">;

/** The rows that must be as they were for the send to be accepted. */
export function restsOf({ caller, line }: SendCommand): RestRow[] {
  return caller.keyRow ? [line.row, caller.keyRow] : [line.row];
}

/** What the send puts into a commit. */
export function loadOfCommand(command: SendCommand): Load {
  return loadOf(command.items.map((item) => item.content));
}
