/**
 * Builds one commit of accepted sends: messages, queue rows, quota, kept answers and history, all or none (promise 1).
 */
import { type Idempotency, keyReused } from "../account/idempotency.ts";
import { proposes } from "../account/keys.ts";
import { charge, quotaLeft, usageAt, utcDay } from "../account/quota.ts";
import { traceStep } from "../base/trace.ts";
import { makeYieldPoint } from "../base/batches.ts";
import { invalid, Problem } from "../errors.ts";
import type { EventLog } from "../event/event_log.ts";
import type { Runtime } from "../runtime.ts";
import { Change, type Kv, nameOfKey, type Slot } from "../store/kv.ts";
import {
  type Accepted,
  acknowledge,
  findReplay,
  fitsOneCommit,
  type KeptSend,
  type Load,
  loadOf,
  type Precondition,
  preconditionsOf,
  type SendCommand,
  type SendItem,
  WHOLE_COMMIT,
} from "./send_command.ts";
import { enqueue, positionAt, ringQueue } from "./queue/place.ts";
import type { Bell } from "../store/bell.ts";
import { EMPTY_LEDGER, extendLedger, lastPositionOf } from "./history/ledger.ts";
import { previewOf, typeOf } from "./content.ts";
import { isProposed, type Message } from "./message.ts";
import type { SessionName } from "./receipts.ts";
import { filled } from "./templates/filled.ts";
import { OPTED_OUT, optedOutAmong, recipientsOf } from "./opt_outs.ts";
import { type Ledger, messageKeys } from "./rows.ts";
import { publishStaged, stage, writeStaged } from "./bulk.ts";

export interface AcceptOptions {
  kv: Kv;
  runtime: Runtime;
  idempotency: Idempotency;
  events: Pick<EventLog, "append" | "committed">;
  sessionName: SessionName;
  bell: Pick<Bell, "ring">;
}

/** A row that the commit checks has changed: nothing was accepted, and the whole batch must be tried again. */
export class Conflict extends Error {
  override name = "Conflict";
}

export class AcceptCommit {
  readonly #accountId: string;
  readonly #options: AcceptOptions;
  /** The time of all sends of the commit, Unix ms. */
  readonly #now: number;
  /** The day that all sends of the commit are charged to, if it is not that of their time. */
  readonly #charged: Pick<Message, "chargedDay">;
  /** The ledger's row, which the commit checks. */
  #slot: Slot<Ledger>;
  /** The ledger with the quota and positions of this commit's sends; their messages are added to it by `write`. */
  #ledger: Ledger;
  readonly #change = new Change();
  readonly #messages: Message[] = [];
  readonly #lines = new Set<string>();
  readonly #preconditions = new Set<Precondition>();
  readonly #byIdempotencyKey = new Map<string, { fingerprint: string; accepted: Accepted }>();
  /** The id of the bulk that this commit publishes, while it is staged and not published; else null. */
  staged: string | null = null;

  /** `slot` is the ledger as this process last read or wrote it. */
  constructor(slot: Slot<Ledger>, { accountId, options }: { accountId: string; options: AcceptOptions }) {
    this.#accountId = accountId;
    this.#options = options;
    this.#now = options.runtime.clock.now();
    this.#slot = slot;
    this.#ledger = slot.value ?? EMPTY_LEDGER;
    const { day } = usageAt(this.#ledger.usage, this.#now);
    this.#charged = day === utcDay(this.#now) ? {} : { chargedDay: day };
  }

  /**
   * Returns the answer to replay if the send was accepted before, else null. Throws Problem
   * idempotency_key_reused. Reads after the ledger was read: an answer that is kept later comes with a change of
   * the ledger, so `write` throws Conflict.
   */
  replay(idempotency: NonNullable<SendCommand["idempotency"]>): Promise<Accepted | null> {
    return findReplay(this.#options, { accountId: this.#accountId, ...idempotency });
  }

  /**
   * Adds a send. Throws Problem quota_exceeded, recipient_opted_out, validation_failed, idempotency_key_reused, which
   * leave the commit unchanged; Conflict.
   */
  async add(command: SendCommand): Promise<Accepted> {
    const { caller: { plan }, items, idempotency } = command;
    const earlier = idempotency && this.#byIdempotencyKey.get(idempotency.key);
    if (earlier) {
      if (earlier.fingerprint !== idempotency.fingerprint) throw keyReused();
      return { ...earlier.accepted, replayed: true };
    }

    if (proposes(command.caller)) await this.#refuseTooLarge(command);
    if (this.#ledger.optOuts) await this.#refuseOptedOut(command);
    const usage = charge(this.#ledger.usage, items.length, { plan, now: this.#now });
    const messages = command.bulk
      ? await this.#messagesOf(command)
      : command.items.map((item, place) => this.#messageOf(command, { item, place, bulkId: null }));
    const { bulkId, sessionId, createdAt, historyNumber } = messages[0]!;
    if (!fitsOneCommit(loadOfCommand(command))) await this.#stage(messages);
    this.#messages.push(...messages);
    this.#ledger = { ...this.#ledger, usage, lastPosition: lastPositionOf(this.#ledger, messages) };
    if (bulkId !== null) {
      const bulk = {
        accountId: this.#accountId,
        sessionId,
        total: messages.length,
        firstHistoryNumber: historyNumber,
        createdAt,
      };
      this.#change.set(messageKeys.bulk(bulkId), bulk).set(messageKeys.openBulk(bulkId), true)
        .set(messageKeys.bulkOfAccount(this.#accountId, bulkId), true);
    }
    this.#lines.add(sessionId);
    for (const row of preconditionsOf(command)) this.#preconditions.add(row);

    const remaining = quotaLeft(plan, usage);
    const accepted = { bulkId, replayed: false, messages: messages.map(acknowledge), remaining };
    if (idempotency) {
      const answer: KeptSend = { first: historyNumber, count: messages.length, remaining };
      this.#options.idempotency.keep(this.#change, { accountId: this.#accountId, ...idempotency }, answer);
      this.#byIdempotencyKey.set(idempotency.key, { fingerprint: idempotency.fingerprint, accepted });
    }
    return accepted;
  }

  /** Commits what was added; resolves to the new row of the ledger. Throws Conflict, StoreError. */
  async write(): Promise<Slot<Ledger>> {
    if (this.#lines.size === 0) return await this.#unchanged();
    const { key, value } = this.#slot;
    const ledger = extendLedger(this.#change, { accountId: this.#accountId, ledger: value ?? EMPTY_LEDGER }, {
      messages: this.#messages,
      usage: this.#ledger.usage,
    });
    // The messages of a staged bulk are written already.
    if (this.staged === null) enqueue(this.#change, this.#messages);
    // The same row may have been read twice.
    const proposals = this.#messages.filter(isProposed);
    if (proposals.length > 0) await this.#announce(proposals);
    const preconditions = Map.groupBy(this.#preconditions, (row) => `${row.version} ${nameOfKey(row.key)}`);
    for (const [row] of preconditions.values()) this.#change.check(row!);
    const version = await this.#options.kv.commit(this.#change.check(this.#slot).set(key, ledger));
    if (version === null) throw new Conflict();
    this.staged = null;
    if (proposals.length > 0) this.#options.events.committed(this.#accountId);
    for (const lineId of this.#lines) ringQueue(this.#options.bell, lineId);
    const to = this.#options.runtime.clock.now();
    for (const { id, createdAt: from } of this.#messages) traceStep(id, { name: "message.accept", from, to });
    return { key, value: ledger, version };
  }

  /**
   * Verifies the ledger if all sends were refused, because no commit checks it: quota may have
   * been refunded. Throws Conflict.
   */
  async #unchanged(): Promise<Slot<Ledger>> {
    const { version } = await this.#options.kv.get(this.#slot.key);
    if (version !== this.#slot.version) throw new Conflict();
    return this.#slot;
  }

  /**
   * Throws Problem recipient_opted_out, or validation_failed for a bulk, if a recipient has opted out. Reads the list
   * after the ledger, which changes with it, so that `write` detects a concurrent change.
   */
  async #refuseOptedOut({ items, bulk }: SendCommand): Promise<void> {
    const recipients = items.map(recipientsOf);
    const out = await optedOutAmong(this.#options.kv, this.#accountId, recipients.flat());
    if (out.size === 0) return;
    if (!bulk) throw new Problem("recipient_opted_out", OPTED_OUT.message);
    const errors = recipients.flatMap((of, i) =>
      of.some((chat) => out.has(chat)) ? [{ path: `messages.${i}.to`, message: "has opted out of your messages" }] : []
    );
    throw new Problem("validation_failed", `${errors.length} of the recipients have opted out.`, { errors });
  }

  /** Throws Problem validation_failed if the messages and their events exceed one commit. */
  async #refuseTooLarge({ items }: SendCommand): Promise<void> {
    const accountId = this.#accountId;
    const said = await filled(this.#options.kv, items.map(({ content }) => ({ accountId, content })));
    const { messages, bytes } = loadOf(items.map(({ manner }, i) => ({ content: said[i]!.content, manner })));
    if (!fitsOneCommit({ messages: 2 * messages, bytes: 2 * bytes })) {
      throw invalid("messages", "are more than a key may propose at once: send fewer, or shorter ones");
    }
  }

  /** Adds the events of proposed messages. */
  async #announce(proposals: readonly Message[]): Promise<void> {
    const { kv, events, sessionName } = this.#options;
    for (const { id: messageId, sessionId, to, content, proposal } of await filled(kv, proposals)) {
      const { text, caption } = previewOf(content);
      events.append(this.#change, {
        accountId: this.#accountId,
        sessionId,
        sessionName: await sessionName(sessionId),
        event: "message.proposed",
        data: { messageId, to, type: typeOf(content), text: text ?? caption, by: proposal!.by },
      });
    }
  }

  /** Creates the messages of a bulk, yielding to the event loop in between. */
  async #messagesOf(command: SendCommand): Promise<Message[]> {
    const { ids, clock } = this.#options.runtime;
    const bulkId = ids.next("blk");
    const messages: Message[] = [];
    const yieldPoint = makeYieldPoint(clock);
    for (const item of command.items) {
      messages.push(this.#messageOf(command, { item, place: messages.length, bulkId }));
      const due = yieldPoint();
      if (due) await due;
    }
    return messages;
  }

  /**
   * Creates a message of a send. `place` is its index in the send, whose messages follow those already in the commit.
   */
  #messageOf(
    { caller, line, ttlMs, sendAt, priority }: SendCommand,
    { item: { to, content, manner }, place, bulkId }: { item: SendItem; place: number; bulkId: string | null },
  ): Message {
    const { ids } = this.#options.runtime;
    const now = this.#now;
    const free = Math.max(this.#ledger.lastPosition + 1, positionAt(now)) + place;
    const id = ids.next("msg");
    return {
      id,
      jobId: id.replace("msg_", "job_"),
      accountId: this.#accountId,
      sessionId: line.id,
      networkId: ids.network(),
      position: sendAt === null ? free : positionAt(sendAt) + place,
      ...(sendAt === null ? {} : { order: free }),
      historyNumber: this.#ledger.messages + this.#messages.length + 1 + place,
      to,
      content,
      ...(manner ? { manner } : {}),
      ...(caller.key && proposes(caller) ? { proposal: { keyId: caller.key.id, by: caller.key.name } } : {}),
      ...this.#charged,
      priority,
      sendAt,
      bulkId,
      status: "queued",
      attempts: 0,
      error: null,
      createdAt: now,
      expiresAt: (sendAt ?? now) + ttlMs,
      sentAt: null,
      deliveredAt: null,
      readAt: null,
    };
  }

  /**
   * Stages a bulk that is too large for one commit; this commit will publish it. First reserves its positions, so that
   * no other message can get one of them, whether or not the bulk is accepted. Throws Conflict.
   */
  async #stage(messages: readonly Message[]): Promise<void> {
    const { kv } = this.#options;
    const bulkId = messages[0]!.bulkId;
    if (bulkId === null) throw new Error("only a bulk may be larger than a commit");
    const reserved: Ledger = { ...this.#ledger, lastPosition: lastPositionOf(this.#ledger, messages) };
    const { key } = this.#slot;
    const reserve = new Change().check(this.#slot).set(key, reserved);
    const announced = stage(reserve, bulkId, messages);
    const version = await kv.commit(reserve);
    if (version === null) throw new Conflict();
    // A staged bulk is alone in its commit, so nothing was added to the ledger yet.
    this.#slot = { key, value: reserved, version };
    this.#ledger = reserved;
    this.staged = bulkId;
    const staged = { ...announced, version };
    await writeStaged(kv, staged, messages);
    publishStaged(this.#change, staged);
  }
}

/** Returns an upper bound of what the send adds to a commit. Proposals, which have events, come alone. */
export function loadOfCommand({ caller, items }: SendCommand): Load {
  return proposes(caller) ? WHOLE_COMMIT : loadOf(items);
}
