/**
 * Edits and revocations of the account's own messages. A message that still waits is changed in its row.
 * For one that has left, an edit or revoke message is sent at once, bypassing the queue, and takes effect
 * once the server acknowledges it.
 */
import { notFound, Problem } from "../errors.ts";
import { type OutgoingContent, typeOf } from "../message/content.ts";
import { ownMessage } from "../message/history/ledger.ts";
import { assertMayChange, MAY_CHANGE_ALL, type MayChange } from "../message/proposals.ts";
import { type CancelDeps, cancelQueued } from "../message/queue_changes.ts";
import { ringQueue } from "../message/queue/place.ts";
import type { Message } from "../message/message.ts";
import { messageKeys } from "../message/rows.ts";
import type { Runtime } from "../runtime.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import { hadOtherNumber } from "./line.ts";
import type { LiveLines } from "./live.ts";
import { NetworkRefusal, NetworkTimeout } from "../whatsapp/connection.ts";
import type { IncomingChange } from "../whatsapp/incoming.ts";
import type { OutgoingBody } from "../whatsapp/outgoing.ts";
import type { Referred } from "./references.ts";
import { lineKeys } from "./rows.ts";

/** How long after sending the network accepts an edit, and a deletion for everyone. */
const EDITABLE = { ms: 15 * 60_000, text: "15 minutes" };
const REVOCABLE = { ms: 60 * 3_600_000, text: "60 hours" };

interface AmendmentsDeps extends CancelDeps {
  runtime: Runtime;
  live: Pick<LiveLines, "deliver" | "connection">;
}

/**
 * Edits and revokes messages. `edit` and `revoke` resolve to the changed message. The methods throw Problem not_found,
 * also for another account's id, not_editable or not_revocable, scope_missing for a message that `may` excludes; and NetworkRefusal or NetworkTimeout, in which case
 * nothing is recorded.
 */
export function makeAmendments(deps: AmendmentsDeps) {
  const { kv, bell, live, runtime: { clock, ids } } = deps;

  /** Changes the text of a text message. */
  async function edit(accountId: string, messageId: string, text: string, may = MAY_CHANGE_ALL): Promise<Message> {
    const message = await own(accountId, messageId, may);
    if (typeOf(message.content) !== "text") throw notEditable("Only text messages can be edited.");
    // The words of a template are left behind, those of a text may keep the preview of its link.
    const content: OutgoingContent = {
      ...(message.content.kind === "text" ? message.content : {}),
      kind: "text",
      text,
    };
    const changed = await rewrite(
      kv,
      messageId,
      (m) => isWaiting(m) && may(m) ? { ...m, content, revision: (m.revision ?? 0) + 1 } : null,
    );
    if (changed) {
      ringQueue(bell, changed.sessionId);
      return changed;
    }
    const sent = await own(accountId, messageId, may);
    await checkSent(sent, EDITABLE, notEditable);
    await relay(message, { kind: "edit", target: sent.networkId, text });
    return await record(messageId, (m) => isErased(m) ? m : { ...m, content, editedAt: clock.now() });
  }

  /** Deletes the message for everyone, or cancels it if it still waits. */
  async function revoke(accountId: string, messageId: string, may = MAY_CHANGE_ALL): Promise<Message> {
    const message = await own(accountId, messageId, may);
    const [cancelled] = await cancelQueued(deps, accountId, [messageId], may);
    if (cancelled) return cancelled;
    const sent = await own(accountId, messageId, may);
    const { networkId, content: { kind } } = sent;
    if (kind === "reaction") throw notRevocable("To remove a reaction, send one with an empty emoji.");
    if (kind === "status") throw notRevocable("A status post cannot be deleted; it disappears after a day.");
    await checkSent(sent, REVOCABLE, notRevocable);
    const target = { networkId, participant: null, fromMe: true };
    await relay(message, { kind: "revoke", target });
    return await record(messageId, (m) => ({ ...m, revokedAt: clock.now() }));
  }

  /**
   * Deletes a message from a group of the line. Another participant's message can be deleted only if the line is an
   * admin. Throws as `revoke` does, and not_found for a message of another chat.
   */
  async function revokeInGroup(
    { lineId, gid }: { lineId: string; gid: string },
    { chat, key, message }: Referred,
  ): Promise<void> {
    if (chat !== gid) throw notFound("message");
    if (message) {
      await revoke(message.accountId, message.id);
      return;
    }
    const connection = live.connection(lineId);
    if (!key.fromMe && connection && !(await connection.groups.get(gid)).isAdmin) {
      throw notRevocable("Another participant sent it, and the line is not an admin of the group.");
    }
    await relay({ sessionId: lineId, to: gid }, { kind: "revoke", target: key });
  }

  async function own(accountId: string, messageId: string, may: MayChange): Promise<Message> {
    const { value } = await ownMessage(kv, accountId, messageId);
    if (isErased(value)) throw notFound("message");
    assertMayChange(may, value);
    return value;
  }

  /** Throws what `refusal` returns for the reason if the message can no longer be changed, or not yet. */
  async function checkSent(
    { status, sentAt, revokedAt, sessionId }: Message,
    within: typeof EDITABLE,
    refusal: (detail: string) => Problem,
  ): Promise<void> {
    if (status !== "sent" || sentAt === null) throw refusal(`The message is ${status}.`);
    if (revokedAt !== undefined) throw refusal("The message was deleted.");
    if (clock.now() - sentAt > within.ms) throw refusal(`It was sent more than ${within.text} ago.`);
    const { value: line } = await kv.get(lineKeys.line(sessionId));
    if (line === null || !hadOtherNumber(line, sentAt)) return;
    // Phones ignore a change by anyone but the sender, although the server acknowledges it.
    throw refusal("The session sent it from another number than the one it is linked to now.");
  }

  /** Records a change that the network made. Throws Problem not_found if retention has removed the message since. */
  async function record(messageId: string, next: (message: Message) => Message): Promise<Message> {
    const recorded = await rewrite(kv, messageId, next);
    if (!recorded) throw notFound("message");
    return recorded;
  }

  /** Sends the edit or revocation and waits for the server's acknowledgement. */
  async function relay({ sessionId, to }: Pick<Message, "sessionId" | "to">, body: OutgoingBody): Promise<void> {
    const outcome = await live.deliver(sessionId, { networkId: ids.network(), to, body });
    if (outcome.kind === "sent") return;
    throw outcome.kind === "unknown" ? new NetworkTimeout(outcome.detail) : new NetworkRefusal(outcome.detail);
  }

  return { edit, revoke, revokeInGroup };
}

/**
 * Records an edit or deletion that was not made through the API, but by the owner on the phone or an admin of the
 * group. Throws StoreError.
 */
export async function amendSent(
  { kv, now }: { kv: Kv; now: number },
  lineId: string,
  happened: IncomingChange,
): Promise<void> {
  if (happened.kind === "vote") return;
  const { value: messageId } = await kv.get(messageKeys.messageOfNetworkId(lineId, happened.target));
  if (messageId === null) return;
  await rewrite(kv, messageId, (message) => {
    if (isErased(message)) return null;
    return happened.kind === "deleted"
      ? { ...message, revokedAt: message.revokedAt ?? now }
      : { ...message, content: reworded(message.content, happened.text), editedAt: now };
  });
}

/** Rewrites the row. Resolves to null, and changes nothing, if the row is missing or `next` returns null for it. */
function rewrite(kv: Kv, messageId: string, next: (message: Message) => Message | null): Promise<Message | null> {
  return retryOnConflict<Message | null>(kv, async () => {
    const slot = await kv.get(messageKeys.message(messageId));
    const result = slot.value && next(slot.value);
    const change = new Change().check(slot);
    return { change: result ? change.set(messageKeys.message(messageId), result) : change, result };
  });
}

function reworded(content: OutgoingContent, text: string | null): OutgoingContent {
  if (content.kind === "text") return { ...content, text: text ?? "" };
  return "caption" in content ? { ...content, caption: text } : content;
}

function isErased({ erasedAt }: Message): boolean {
  return erasedAt !== undefined;
}

/** Returns whether the message has certainly not reached the network: a queued one may have, in an earlier attempt. */
function isWaiting({ status, attempts }: Message): boolean {
  return status === "queued" && attempts === 0;
}

function notEditable(detail: string): Problem {
  return new Problem("not_editable", detail);
}

function notRevocable(detail: string): Problem {
  return new Problem("not_revocable", detail);
}
