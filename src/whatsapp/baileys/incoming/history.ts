/**
 * The history that the owner's phone sends to a newly linked device. The gateway reports only what arrives after
 * linking, so it takes from the history only what lets the line write to the account's chats: the tokens that the other
 * sides gave (`tctoken`), and the salt for tokens to all other chats (`cstoken`).
 */
import { Buffer } from "node:buffer";
import { promisify } from "node:util";
import { unzip, type ZlibOptions } from "node:zlib";
import { jidNormalizedUser, type proto, type SignalKeyStoreWithTransaction } from "@whiskeysockets/baileys";
import { buildMergedTcTokenIndexWrite } from "@whiskeysockets/baileys/lib/Utils/tc-token-utils.js";
import protobuf from "protobufjs/minimal.js";
import { errorName } from "../../../base/retry.ts";
import type { Clock, Runtime } from "../../../runtime.ts";
import { StoreError } from "../../../store/kv.ts";
import type { KeyData } from "../auth_state.ts";
import type { MediaHost } from "../media_host.ts";
import { downloadMedia } from "./media.ts";

/**
 * Limits of one file, and of one part of the history when inflated. A phone splits a larger history into more parts.
 */
const MOST_BYTES = 64 * 1024 * 1024;
const MOST_BYTES_INFLATED = 256 * 1024 * 1024;
const LONGEST_MS = 60_000;
/** Times from here on are milliseconds: in seconds this would be the year 33658. */
const FIRST_MS = 1e12;

/**
 * Field numbers in HistorySync and Conversation. The library's schema lacks the salt, and would decode all messages as
 * well.
 */
const CONVERSATION = 2;
const NCT_SALT = 19;
const ID = 1;
const TOKEN = 21;
const TOKEN_AT = 22;
const TOKEN_SENT_AT = 28;
const LID = 42;
const LENGTH_DELIMITED = 2;
const VARINT = 0;

export type HistoryNotification = proto.Message.IHistorySyncNotification;
type Keys = SignalKeyStoreWithTransaction;

interface ChatToken {
  /** The LID if the history names it, because the library stores tokens by LID. */
  chat: string;
  token: Uint8Array;
  /** Unix seconds. */
  at: number;
  sentAt: number | null;
}

/**
 * Takes the tokens from one part of the history. An unreadable part is skipped: the line works without it. Throws
 * StoreError.
 */
export async function takeHistory(
  notification: HistoryNotification,
  { keys, host, runtime: { clock, log } }: { keys: Keys; host: MediaHost; runtime: Pick<Runtime, "clock" | "log"> },
): Promise<void> {
  try {
    const packed = await partOf(notification, { host, clock });
    const { tokens, salt } = readHistory(await inflated(packed, { maxOutputLength: MOST_BYTES_INFLATED }));
    if (tokens.length > 0) await keepTokens(keys, tokens);
    if (salt) {
      const row: KeyData = { "nct-salt": { [SALT_ID]: Buffer.from(salt) } };
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

const inflated = promisify<Uint8Array, ZlibOptions, Uint8Array>(unzip);

async function partOf(file: HistoryNotification, from: { host: MediaHost; clock: Clock }): Promise<Uint8Array> {
  if (file.initialHistBootstrapInlinePayload?.length) return file.initialHistBootstrapInlinePayload;
  return await wholeFile({ kind: "md-msg-hist", file }, from);
}

/**
 * Downloads a file that a device of the account made for the others. Throws RangeError above the size limit, and as
 * `downloadMedia` does.
 */
export async function wholeFile(
  media: Parameters<typeof downloadMedia>[1],
  { host, clock }: { host: MediaHost; clock: Clock },
): Promise<Uint8Array> {
  if (Number(media.file.fileLength ?? 0) > MOST_BYTES) throw new RangeError("the file is too large");
  const ended = new AbortController();
  const cancel = clock.after(LONGEST_MS, () => ended.abort());
  try {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of await downloadMedia(host, media, ended.signal)) {
      size += chunk.length;
      if (size > MOST_BYTES) throw new RangeError("the file is too large");
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } finally {
    cancel();
  }
}

/** Reads the tokens and the salt. Throws if the bytes are not a HistorySync. */
export function readHistory(bytes: Uint8Array): { tokens: ChatToken[]; salt: Uint8Array | null } {
  const tokens: ChatToken[] = [];
  let salt: Uint8Array | null = null;
  readFields(bytes, (field, value) => {
    if (!(value instanceof Uint8Array)) return;
    if (field === NCT_SALT && value.length > 0) salt = value;
    if (field !== CONVERSATION) return;
    const token = readConversation(value);
    if (token) tokens.push(token);
  });
  return { tokens, salt };
}

function readConversation(bytes: Uint8Array): ChatToken | null {
  const found = new Map<number, Uint8Array | number>();
  readFields(bytes, (field, value) => found.set(field, value));
  const text = (field: number) => Buffer.from(bytesIn(found.get(field))).toString("utf8");
  const seconds = (field: number) => {
    const time = Number(found.get(field) ?? 0);
    return time >= FIRST_MS ? Math.floor(time / 1000) : time;
  };
  const token = bytesIn(found.get(TOKEN));
  const chat = jidNormalizedUser(text(LID) || text(ID));
  if (token.length === 0 || seconds(TOKEN_AT) === 0 || chat === "") return null;
  return { chat, token, at: seconds(TOKEN_AT), sentAt: seconds(TOKEN_SENT_AT) || null };
}

function bytesIn(value: Uint8Array | number | undefined): Uint8Array {
  return value instanceof Uint8Array ? value : new Uint8Array(0);
}

/** Calls `take` for each field that is bytes or a number; skips the others. */
export function readFields(bytes: Uint8Array, take: (field: number, value: Uint8Array | number) => void): void {
  const reader = protobuf.Reader.create(bytes);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    const [field, type] = [tag >>> 3, tag & 7];
    if (type === LENGTH_DELIMITED) take(field, reader.bytes());
    else if (type === VARINT) take(field, Number(reader.uint64()));
    else reader.skipType(type);
  }
}

/** Stores the tokens, unless a newer one is known. */
async function keepTokens(keys: Keys, tokens: ChatToken[]): Promise<void> {
  const known = await keys.get("tctoken", tokens.map(({ chat }) => chat));
  const fresh = tokens.filter(({ chat, at }) => Number(known[chat]?.timestamp ?? 0) < at);
  if (fresh.length === 0) return;
  const rows = Object.fromEntries(fresh.map(({ chat, token, at, sentAt }) => [chat, {
    ...known[chat],
    token: Buffer.from(token),
    timestamp: String(at),
    ...(sentAt === null ? {} : { senderTimestamp: sentAt }),
  }]));
  const index = await buildMergedTcTokenIndexWrite(keys, fresh.map(({ chat }) => chat));
  await keys.set({ tctoken: { ...rows, ...index } });
}
