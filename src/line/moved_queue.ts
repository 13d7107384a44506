/**
 * The queue of a line that moves to another gateway, files included: read at the old gateway,
 * inserted once at the new one.
 */
import { Buffer } from "node:buffer";
import { usageAt } from "../account/quota.ts";
import type { SharedMediaStore } from "../media/fair_shares.ts";
import { commitSized, loadOf } from "../message/send_command.ts";
import { attachmentOf, storedFile, withAttachment } from "../message/content.ts";
import { addToChats, enqueue } from "../message/queue/place.ts";
import { EMPTY_LEDGER, extendLedger } from "../message/history/ledger.ts";
import type { Message, MessageError } from "../message/message.ts";
import { LineQueue } from "../message/queue/queue.ts";
import { type Ledger, messageKeys } from "../message/rows.ts";
import { filled } from "../message/templates/filled.ts";
import type { Runtime } from "../runtime.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import type { Line } from "./line.ts";
import { lineKeys } from "./rows.ts";

/** The error of a waiting message at the gateway that its line has left. */
export const MOVED: MessageError = {
  code: "moved",
  message: "It went with its line to another gateway, where it has the same id.",
};

/** A waiting message, with its file in base64; `file` is null if it has none. */
export interface MovedMessage {
  message: Message;
  file: string | null;
}

/** Messages inserted per commit, at most. */
const AT_ONCE = 50;

/**
 * Reads everything that waits on the line, in the order in which it began to wait. Null if contents and files exceed
 * `mostBytes`; the rest is not read then.
 */
export async function readQueue(
  { kv, media }: { kv: Kv; media: Pick<SharedMediaStore, "read"> },
  lineId: string,
  mostBytes: number,
): Promise<MovedMessage[] | null> {
  const moved: MovedMessage[] = [];
  let bytes = 0;
  for await (const waiting of new LineQueue(kv, lineId).each(Infinity)) {
    // The other gateway does not have the templates.
    const [message] = await filled(kv, [waiting]) as [Message];
    const stored = storedFile(message.content);
    bytes += loadOf([message]).bytes + (stored?.size ?? 0);
    if (bytes > mostBytes) return null;
    const content = stored && await media.read(stored.fileId, { start: 0, length: stored.size });
    const file = content && Buffer.from(await new Response(content).arrayBuffer()).toString("base64");
    moved.push({ message, file });
  }
  return moved.sort(({ message: a }, { message: b }) => a.position - b.position || a.historyNumber - b.historyNumber);
}

interface WriteDeps {
  kv: Kv;
  media: Pick<SharedMediaStore, "write">;
  runtime: Runtime;
}

/**
 * Inserts the messages into the line's queue, in their places and under their ids. Each commit updates the number
 * inserted in the import's row, so that an interrupted import resumes behind them. No quota is charged: the gateway
 * that accepted the messages has charged it.
 */
export async function writeQueue(
  { kv, media, runtime }: WriteDeps,
  { id: lineId, accountId }: Pick<Line, "id" | "accountId">,
  { importId, moved }: { importId: string; moved: readonly MovedMessage[] },
): Promise<void> {
  const done = (await kv.get(lineKeys.imported(importId))).value?.messages ?? 0;
  let at = done;
  for (const batch of commitSized(moved.slice(done), ({ message }) => loadOf([message]), AT_ONCE)) {
    const some = await Promise.all(batch.map((one) => withFile(media, accountId, one)));
    await putIn({ kv, runtime }, { lineId, accountId, importId, at }, some);
    at += some.length;
  }
}

/** Stores the message's file, if it has one, and returns the message with a reference to it. */
async function withFile(
  media: Pick<SharedMediaStore, "write">,
  accountId: string,
  { message, file }: MovedMessage,
): Promise<Message> {
  if (file === null) return message;
  const bytes = Buffer.from(file, "base64");
  const stored = await media.write(new Blob([bytes]).stream(), { accountId, maxBytes: bytes.length });
  const attachment = { ...attachmentOf(message.content)!, file: stored };
  return { ...message, content: withAttachment(message.content, attachment) };
}

interface Place {
  lineId: string;
  accountId: string;
  importId: string;
  /** How many messages of the import are inserted already. */
  at: number;
}

/**
 * Inserts the messages in one commit. Does nothing if a concurrent import of the same file has inserted them already,
 * or if the line has been deleted.
 */
async function putIn(
  { kv, runtime }: Pick<WriteDeps, "kv" | "runtime">,
  { lineId, accountId, importId, at }: Place,
  messages: readonly Message[],
): Promise<void> {
  await retryOnConflict(kv, async () => {
    const change = new Change();
    const progress = await kv.get(lineKeys.imported(importId));
    const line = await kv.get(lineKeys.line(lineId));
    const isGone = line.value === null || line.value.wanted === "deleted";
    if (isGone || progress.value?.messages !== at) return { change, result: null };
    const slot = await kv.get<Ledger>(messageKeys.ledger(accountId));
    const taken = await kv.getMany(messages.map(({ id }) => messageKeys.message(id)));
    const ledger = slot.value ?? EMPTY_LEDGER;
    const now = runtime.clock.now();
    const placed = messages.map((message, i): Message => {
      // The line returns to a gateway that it left: a record with this id is still there, failed as `moved`.
      const id = taken[i]!.value === null ? message.id : runtime.ids.next("msg");
      return {
        ...message,
        id,
        jobId: id.replace("msg_", "job_"),
        accountId,
        sessionId: lineId,
        historyNumber: ledger.messages + 1 + i,
        // The bulk does not move with the line.
        bulkId: null,
        status: "queued",
        createdAt: now,
        charged: false,
      };
    });
    enqueue(change, placed);
    // Their positions are those that the other gateway gave them.
    addToChats(change, placed);
    for (const { attempts, networkId, id } of placed) {
      if (attempts > 0) change.set(messageKeys.messageOfNetworkId(lineId, networkId), id);
    }
    const extended = extendLedger(change, { accountId, ledger }, {
      messages: placed,
      usage: usageAt(ledger.usage, now),
    });
    change.check(line).check(slot).set(slot.key, extended);
    change.check(progress).set(progress.key, { ...progress.value, messages: at + placed.length });
    return { change, result: null };
  });
}
