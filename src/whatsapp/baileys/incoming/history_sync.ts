/**
 * The history that the owner's phone sends to a newly linked device. The gateway reports only what arrives after
 * linking, so it takes from the history only what lets the line write to the account's chats: the tokens that the other
 * sides gave (`tctoken`), and the salt for tokens to all other chats (`cstoken`).
 */
import { Buffer } from "node:buffer";
import { jidNormalizedUser, type proto, type SignalKeyStoreWithTransaction } from "@whiskeysockets/baileys";
import { buildMergedTcTokenIndexWrite } from "@whiskeysockets/baileys/lib/Utils/tc-token-utils.js";
import type { ReadOutside } from "../../../inspect/inspector.ts";
import type { ReadHistory } from "../../../inspect/inspection.ts";
import { inBatches } from "../../../base/batches.ts";
import { errorName } from "../../../base/retry.ts";
import { timeLimit } from "../../../base/within.ts";
import { type Clock, type Runtime, sleep } from "../../../runtime.ts";
import { StoreError } from "../../../store/kv.ts";
import type { KeyData } from "../auth_state.ts";
import type { MediaHost } from "../media_host.ts";
import { downloadMedia } from "./media.ts";

/** Limits of one file. */
const MOST_BYTES = 64 * 1024 * 1024;
const LONGEST_MS = 60_000;
/** A MB takes about 15 ms of the event loop to decrypt; as long again belongs to the messages of others. */
const PAUSE_AFTER = 1024 * 1024;
const PAUSE_MS = 15;
/** Tokens stored in one commit or a few, before the line's other work goes on. */
const TOKENS_AT_ONCE = 250;
/** The library reads its list of tokens whole each time. */
const MOST_BYTES_LISTED = 1024 * 1024;

export type HistoryNotification = proto.Message.IHistorySyncNotification;
type Keys = SignalKeyStoreWithTransaction;

/**
 * Takes the tokens from one part of the history. An unreadable part is skipped: the line works without it. Throws
 * StoreError.
 */
export async function takeHistory(
  notification: HistoryNotification,
  { keys, host, readOutside, runtime: { clock, log } }: {
    keys: Keys;
    host: MediaHost;
    readOutside: ReadOutside;
    runtime: Pick<Runtime, "clock" | "log">;
  },
): Promise<void> {
  try {
    const { initialHistBootstrapInlinePayload: inline } = notification;
    const packed = inline?.length
      ? [inline]
      : await wholeFile({ kind: "md-msg-hist", file: notification }, { host, clock });
    const { tokens, salt } = await readOutside({ read: "history" }, packed);
    for (const some of inBatches(tokens, TOKENS_AT_ONCE)) {
      await keepTokens(keys, some.map(({ chat, ...token }) => ({ chat: jidNormalizedUser(chat), ...token })));
    }
    if (salt) {
      const row: KeyData = { "nct-salt": { [SALT_ID]: Buffer.from(salt, "base64") } };
      await keys.set(row);
    }
    log.debug({ tokens: tokens.length, salt: salt !== null }, "the tokens from a part of the history were stored");
  } catch (error) {
    if (error instanceof StoreError) throw error;
    log.warn({ error: errorName(error) }, "a part of the history could not be read");
  }
}

/** Id of the row that holds the salt. */
export const SALT_ID = "salt";

/**
 * Downloads a file that a device of the account made for the others. Throws RangeError above the size limit, and as
 * `downloadMedia` does.
 */
export async function wholeFile(
  media: Parameters<typeof downloadMedia>[1],
  { host, clock }: { host: MediaHost; clock: Clock },
): Promise<Uint8Array[]> {
  if (Number(media.file.fileLength ?? 0) > MOST_BYTES) throw new RangeError("the file is too large");
  using limit = timeLimit(clock, LONGEST_MS);
  const chunks: Uint8Array[] = [];
  let [size, unpaused] = [0, 0];
  for await (const chunk of await downloadMedia(host, media, limit.signal)) {
    size += chunk.length;
    if (size > MOST_BYTES) throw new RangeError("the file is too large");
    chunks.push(chunk);
    unpaused += chunk.length;
    if (unpaused < PAUSE_AFTER) continue;
    await sleep(clock, PAUSE_MS);
    unpaused = 0;
  }
  return chunks;
}

/** Stores the tokens, unless a newer one is known. */
async function keepTokens(keys: Keys, tokens: ReadHistory["tokens"]): Promise<void> {
  const known = await keys.get("tctoken", tokens.map(({ chat }) => chat));
  const fresh = tokens.filter(({ chat, at }) => Number(known[chat]?.timestamp ?? 0) < at);
  if (fresh.length === 0) return;
  const rows = Object.fromEntries(fresh.map(({ chat, token, at, sentAt }) => [chat, {
    ...known[chat],
    token: Buffer.from(token, "base64"),
    timestamp: String(at),
    ...(sentAt === null ? {} : { senderTimestamp: sentAt }),
  }]));
  const index = await buildMergedTcTokenIndexWrite(keys, fresh.map(({ chat }) => chat));
  if (Object.values(index).some(({ token }) => token.length > MOST_BYTES_LISTED)) return;
  await keys.set({ tctoken: { ...rows, ...index } });
}
