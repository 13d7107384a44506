/** What waits on a line as it moves to another gateway, files included: read at the old place, put in once at the new one. */
import { Buffer } from "node:buffer";
import { usageAt } from "../account/quota.ts";
import type { SharedMediaStore } from "../media/fair_writes.ts";
import { commitSized, loadOf } from "../message/commit_size.ts";
import { attachmentOf, storedFile, withAttachment } from "../message/content.ts";
import { enqueue } from "../message/queue/enqueue.ts";
import { positionAt } from "../message/queue/place.ts";
import { EMPTY_LEDGER, extendLedger } from "../message/history/ledger.ts";
import type { Message, MessageError } from "../message/message.ts";
import { LineQueue } from "../message/queue/queue.ts";
import { type Ledger, messageKeys } from "../message/rows.ts";
import type { Runtime } from "../runtime.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import type { Line } from "./line.ts";
import { lineKeys } from "./rows.ts";

/** What a message ends with at the place that its line has left. */
export const MOVED: MessageError = {
  code: "moved",
  message: "It went with its line to another gateway, where it has the same id.",
};

/** A message that waits, with the bytes of its file in base64. */
export interface MovedMessage {
  message: Message;
  file: string | null;
}

/** Messages that are put in by one commit, at most. */
const AT_ONCE = 50;

/**
 * Everything that waits on the line, in the order of departure; null when contents and files are more than `mostBytes`,
 * which are not read then.
 */
export async function readQueue(
  { kv, media }: { kv: Kv; media: Pick<SharedMediaStore, "read"> },
  lineId: string,
  mostBytes: number,
): Promise<MovedMessage[] | null> {
  const moved: MovedMessage[] = [];
  let bytes = 0;
  for await (const message of new LineQueue(kv, lineId).each(Infinity)) {
    const stored = storedFile(message.content);
    bytes += loadOf([message]).bytes + (stored?.size ?? 0);
    if (bytes > mostBytes) return null;
    const content = stored && await media.read(stored.fileId, { start: 0, length: stored.size });
    const file = content && Buffer.from(await new Response(content).arrayBuffer()).toString("base64");
    moved.push({ message, file });
  }
  return moved;
}

interface WriteDeps {
  kv: Kv;
  media: Pick<SharedMediaStore, "write">;
  runtime: Runtime;
}

/**
 * Puts the messages into the queue of the line, in their order and under their ids. Each commit counts in the row of the
 * import how many are in, so that an import that is run again goes on behind them. No quota is charged: that was done
 * where they were accepted.
 */
export async function writeQueue(
  { kv, media, runtime }: WriteDeps,
  { id: lineId, accountId }: Pick<Line, "id" | "accountId">,
  { importId, moved }: { importId: string; moved: readonly MovedMessage[] },
): Promise<void> {
  const done = (await kv.get(lineKeys.imported(importId))).value?.messages ?? 0;
  let at = done;
  for (const piece of commitSized(moved.slice(done), ({ message }) => loadOf([message]), AT_ONCE)) {
    const some = await Promise.all(piece.map((one) => withFile(media, accountId, one)));
    await putIn({ kv, runtime }, { lineId, accountId, importId, at }, some);
    at += some.length;
  }
}

/** The message with its file in the media store. */
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
  /** How many of the import are in already. */
  at: number;
}

/** One commit; nothing when another import of the same file has put them in meanwhile. */
async function putIn(
  { kv, runtime }: Pick<WriteDeps, "kv" | "runtime">,
  { lineId, accountId, importId, at }: Place,
  messages: readonly Message[],
): Promise<void> {
  await retryOnConflict(kv, async () => {
    const change = new Change();
    const progress = await kv.get(lineKeys.imported(importId));
    if (progress.value?.messages !== at) return { change, result: null };
    const slot = await kv.get<Ledger>(messageKeys.ledger(accountId));
    const taken = await kv.getMany(messages.map(({ id }) => messageKeys.message(id)));
    const ledger = slot.value ?? EMPTY_LEDGER;
    const now = runtime.clock.now();
    const first = Math.max(ledger.lastPosition + 1, positionAt(now));
    const placed = messages.map((message, i): Message => {
      // The line has come back to where it was: the message's record is there, and says that it went.
      const id = taken[i]!.value === null ? message.id : runtime.ids.next("msg");
      return {
        ...message,
        id,
        jobId: id.replace("msg_", "job_"),
        accountId,
        sessionId: lineId,
        position: message.sendAt === null ? first + i : positionAt(message.sendAt),
        historyNumber: ledger.messages + 1 + i,
        // The rest of its bulk stayed behind.
        bulkId: null,
        status: "queued",
        createdAt: now,
      };
    });
    enqueue(change, placed);
    for (const { attempts, networkId, id } of placed) {
      if (attempts > 0) change.set(messageKeys.messageOfNetworkId(lineId, networkId), id);
    }
    const extended = extendLedger(change, { accountId, ledger }, {
      messages: placed,
      usage: usageAt(ledger.usage, now),
    });
    change.check(slot).set(slot.key, extended);
    change.check(progress).set(progress.key, { ...progress.value, messages: at + placed.length });
    return { change, result: null };
  });
}
