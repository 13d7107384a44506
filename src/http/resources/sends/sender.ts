/** Accepts messages, from the validated request to the commit, and answers the client. */
import PQueue from "p-queue";
import type { Caller } from "../../../account/account.ts";
import type { RepeatableRequest } from "../../../account/idempotency.ts";
import { quotaHeadersOf } from "../../../account/quota.ts";
import { makeYieldPoint } from "../../../base/batches.ts";
import { refusal } from "../../../base/validation.ts";
import { HEAD_BYTES } from "../../../base/file_types.ts";
import { invalid, Problem } from "../../../errors.ts";
import { refusalOf, remoteFile, storedFile } from "../../../message/content.ts";
import type { Line } from "../../../line/line.ts";
import { type Accepted, LineChanged } from "../../../message/send_command.ts";
import { type Row, StoreError, untilCurrent } from "../../../store/kv.ts";
import { repeatable } from "../../api/idempotency.ts";
import type { Answer, ApiContext } from "../../api/route.ts";
import type { Services } from "../../api/services.ts";
import type { Upload } from "../../body/json_upload.ts";
import { DAY_SECONDS, type MannerFields, type SendOptions, sendTimeOf } from "./fields.ts";
import { findUsername } from "../contacts.ts";
import { type Item, resolve } from "./options.ts";

/** Most different usernames in one request, and look-ups under way: the network bans lines that ask too much. */
const USERNAMES_AT_ONCE = 250;
const LOOK_UPS_AT_ONCE = 8;

/** The messages of a send, before their line is known. */
export interface Outgoing {
  items: readonly Item[];
  /** Throws if the line may not send them after all; called each time it was read. */
  checkLine?: ((line: Line) => void) | undefined;
  bulk?: boolean;
  repeat: RepeatableRequest | null;
}

/** The validated fields of an upload, and its file. */
type SendUpload = Upload<SendOptions & MannerFields> & { filename?: string };

export type Sender = ReturnType<typeof makeSender>;

export function makeSender(
  { lines, accept, replay, media, diskShares, metrics, references, runtime }: Services,
) {
  /**
   * Resolves to the first result if the request is a repeated one, otherwise accepts it. `acceptNew` includes every check
   * that may by now refuse what was accepted at first.
   */
  async function once(repeat: RepeatableRequest | null, acceptNew: () => Promise<Accepted>): Promise<Accepted> {
    return (repeat && await replay(repeat)) ?? await acceptNew();
  }

  /**
   * Resolves once the messages are on disk (promise 1); for a repeated request, to the first result. Throws Problem,
   * StoreError.
   */
  function send(caller: Caller, asked: SendOptions, outgoing: Outgoing): Promise<Accepted> {
    return once(outgoing.repeat, () => sendNew(caller, asked, outgoing));
  }

  /** As `send`, within `once`. */
  async function sendNew(caller: Caller, asked: SendOptions, outgoing: Outgoing): Promise<Accepted> {
    const { ttl, sendAt, priority } = asked;
    const { bulk = false, repeat, checkLine } = outgoing;
    const { items, sessionId } = await withoutUsernames(caller, {
      items: outgoing.items,
      sessionId: asked.sessionId ?? null,
    });
    const options = {
      ttlMs: (ttl ?? DAY_SECONDS) * 1000,
      sendAt: sendTimeOf(sendAt, runtime.clock.now()),
      priority: priority ?? "normal",
    };
    const sending = await resolve(items, {
      accountId: caller.account.id,
      sessionId,
      references,
      yieldPoint: makeYieldPoint(runtime.clock),
    });
    // Their turn may come in a process with a place, but none has to have one.
    if (sending.items.some(({ content }) => remoteFile(content) ?? storedFile(content))) media.assertPlace();
    const command = { ...options, caller, items: sending.items, bulk, idempotency: repeat };
    const accepted = await onLine(caller.account.id, sending.sessionId, ({ id, row }) => {
      checkLine?.(row.value);
      return accept({ ...command, line: { id, row } });
    });
    if (!accepted.replayed) metrics.accepted.inc({ kind: bulk ? "bulk" : "single" }, items.length);
    return accepted;
  }

  /**
   * Puts the JID in place of each username: what the gateway knows of a person, it knows by number or JID. The line that
   * looked them up is the one that sends.
   */
  async function withoutUsernames(
    { account }: Caller,
    { items, sessionId }: { items: readonly Item[]; sessionId: string | null },
  ): Promise<{ items: readonly Item[]; sessionId: string | null }> {
    const named = Map.groupBy(items.filter(({ to }) => to.startsWith("@")), ({ to }) => to.toLowerCase());
    if (named.size === 0) return { items, sessionId };
    const refuse = (of: readonly Item[], message: string) =>
      refusal(of.map(({ path = "" }) => ({ path: `${path}to`, message })));
    const [tooMany] = [...named.values()].slice(USERNAMES_AT_ONCE);
    if (tooMany) throw refuse(tooMany, `is one username too many: at most ${USERNAMES_AT_ONCE} are looked up at once`);
    const { value: { id } } = await lines.forSending(account.id, sessionId);
    const connection = await lines.connection(account.id, id);
    const jids = new Map<string, string | null>();
    const look = async ([first]: readonly Item[]) => {
      const { to, path = "" } = first!;
      jids.set(to.toLowerCase(), (await findUsername(connection, { username: to, path: `${path}to` })).jid);
    };
    const looks = new PQueue({ concurrency: LOOK_UPS_AT_ONCE });
    await looks.addAll([...named.values()].map((of) => () => look(of))).finally(() => looks.clear());
    const unknown = [...named].flatMap(([name, of]) => jids.get(name) === null ? of : []);
    if (unknown.length > 0) throw refuse(unknown, "is nobody's username");
    return { items: items.map((item) => ({ ...item, to: jids.get(item.to.toLowerCase()) ?? item.to })), sessionId: id };
  }

  /** Finds the line and accepts on it; retries if the line changed in the meantime. */
  async function onLine(
    accountId: string,
    sessionId: string | null,
    acceptOn: (line: { id: string; row: Row<Line> }) => Promise<Accepted>,
  ): Promise<Accepted> {
    return await untilCurrent(async () => {
      const row = await lines.forSending(accountId, sessionId);
      const { id } = row.value;
      try {
        return await acceptOn({ id, row });
      } catch (error) {
        if (!(error instanceof LineChanged)) throw error;
        lines.changed(id);
        return undefined;
      }
    });
  }

  return {
    once,
    send,
    sendNew,
    /** Accepts a message with an uploaded file and returns the 202; removes the file if the message is refused. */
    async sendUpload(
      { c, caller }: { c: ApiContext; caller: Caller },
      upload: SendUpload,
      { to, content }: Pick<Item, "to" | "content">,
    ): Promise<Answer> {
      const { fields, file } = upload;
      const fileId = file?.fileId;
      try {
        const repeat = repeatOf(c, { caller, upload });
        const accepted = await once(repeat, async () => {
          if (fileId) diskShares.assertRoom(caller.account.id);
          const refusal = fileId && refusalOf(content, await media.head(fileId, HEAD_BYTES));
          if (refusal) throw invalid("file", refusal);
          return await sendNew(caller, fields, { items: [{ to, content, manner: fields }], repeat });
        });
        if (accepted.replayed && fileId) await media.remove(fileId);
        return acknowledged(accepted);
      } catch (error) {
        // Only if certainly no commit refers to the file; otherwise the sweep decides later.
        if (fileId && isRefusal(error)) await media.remove(fileId);
        throw error;
      }
    },
  };
}

/**
 * Whether certainly nothing was written: after `unavailable` or an unexpected error that is unknown (`store/kv.ts`).
 */
function isRefusal(error: unknown): boolean {
  return error instanceof Problem || (error instanceof StoreError && error.code !== "unavailable");
}

/** Returns the 202 of a single send. */
export function acknowledged({ messages, remaining }: Accepted): Answer {
  const { id, status, jobId } = messages[0]!;
  return { status: 202, body: { messageId: id, status, jobId }, headers: quotaHeadersOf(remaining) };
}

/** Returns the identity of an upload: its fields, file name and the hash of its file, not their encoding. */
function repeatOf(c: ApiContext, { caller, upload }: { caller: Caller; upload: SendUpload }) {
  const { fields, file, filename = "" } = upload;
  return repeatable(c, { accountId: caller.account.id, parts: [JSON.stringify(fields), filename, file?.sha256 ?? ""] });
}
