/**
 * Reads, in a process of its own (`inspector.ts`), what other devices of an account made: parts of its history, and
 * files of its settings. Both may be small and unpack to any size, or hold millions of tiny members, so they are read as
 * a stream and no further than the limits here. The library's decoders would make an object of each member.
 */
import { Buffer } from "node:buffer";
import { createUnzip } from "node:zlib";
import protobuf from "protobufjs/minimal.js";
import type { FoundSetting, OutsideRequest, ReadHistory } from "./inspection.ts";

/** One part of the history when inflated. A phone splits a larger history into more parts. */
const MOST_BYTES_INFLATED = 256 * 1024 * 1024;
/** A longer conversation is skipped: its messages are in it. */
const LONGEST_FIELD = 16 * 1024 * 1024;
const MOST_CONVERSATIONS = 100_000;
const MOST_TOKENS = 5_000;
const LONGEST_TOKEN = 512;
const LONGEST_ID = 128;
const MOST_RECORDS = 500_000;
const LONGEST_SETTING = 4_096;
/** Times from here on are milliseconds: in seconds this would be the year 33658. */
const FIRST_MS = 1e12;
const CHUNK_BYTES = 256 * 1024;

/** Field numbers in HistorySync and Conversation. The library's schema lacks the salt. */
const CONVERSATION = 2;
const NCT_SALT = 19;
const ID = 1;
const TOKEN = 21;
const TOKEN_AT = 22;
const TOKEN_SENT_AT = 28;
const LID = 42;
const VARINT = 0;
const LENGTH_DELIMITED = 2;
/** A tag and a number of 64 bits. */
const LONGEST_HEAD = 20;
const NONE: Uint8Array = new Uint8Array(0);

/** Reads what was asked for. Throws if the bytes are not that, or beyond a limit. */
export async function readOutside(request: OutsideRequest, bytes: Uint8Array): Promise<unknown> {
  return request.read === "history" ? await readHistory(bytes) : readSettings(bytes, request);
}

/** Reads the tokens and the salt of a packed part of the history. */
export async function readHistory(packed: Uint8Array): Promise<ReadHistory> {
  const found: ReadHistory = { tokens: [], salt: null };
  let conversations = 0;
  const unzip = createUnzip({ chunkSize: CHUNK_BYTES });
  unzip.end(packed);
  await eachField(unzip, (field, value) => {
    if (field === NCT_SALT && value.length > 0 && value.length <= LONGEST_TOKEN) found.salt = value.toBase64();
    if (field !== CONVERSATION) return true;
    const token = readConversation(value);
    if (token) found.tokens.push(token);
    return ++conversations < MOST_CONVERSATIONS && found.tokens.length < MOST_TOKENS;
  });
  return found;
}

/** Calls `take` for each field of bytes, as the stream goes on, until that returns false. */
async function eachField(
  chunks: AsyncIterable<Uint8Array>,
  take: (field: number, value: Uint8Array) => boolean,
): Promise<void> {
  let parts: Uint8Array[] = [];
  let size = 0;
  let read = 0;
  /** What has to be there before the next field can be read, and what of it is not read. */
  let needed = 1;
  let skip = 0;
  for await (const chunk of chunks) {
    read += chunk.length;
    if (read > MOST_BYTES_INFLATED) throw new RangeError("it is too large when inflated");
    const skipped = Math.min(skip, chunk.length);
    skip -= skipped;
    parts.push(chunk.subarray(skipped));
    size += chunk.length - skipped;
    if (size < needed) continue;
    const bytes = Buffer.concat(parts);
    let at = 0;
    for (needed = 1; at < bytes.length;) {
      const head = headAt(bytes, at);
      if (head === null) {
        needed = bytes.length - at + 1;
        break;
      }
      if (head.end > bytes.length) {
        const isLong = head.end - head.start > LONGEST_FIELD;
        needed = isLong ? 1 : head.end - at;
        if (!isLong) break;
        skip = head.end - bytes.length;
        at = bytes.length;
        break;
      }
      if (head.type === LENGTH_DELIMITED && !take(head.field, bytes.subarray(head.start, head.end))) return;
      at = head.end;
    }
    parts = [bytes.subarray(at)];
    size = bytes.length - at;
  }
  if (size > 0 || skip > 0) throw new RangeError("it ends within a field");
}

/** The place of a field's value; null if its head is not whole. */
function headAt(bytes: Buffer, at: number): { field: number; type: number; start: number; end: number } | null {
  const reader = protobuf.Reader.create(bytes);
  reader.pos = at;
  try {
    const tag = reader.uint32();
    const [field, type] = [tag >>> 3, tag & 7];
    if (field === 0) throw new TypeError("it is no protobuf");
    if (type === LENGTH_DELIMITED) {
      const length = reader.uint32();
      return { field, type, start: reader.pos, end: reader.pos + length };
    }
    const start = reader.pos;
    reader.skipType(type);
    return { field, type, start, end: reader.pos };
  } catch (error) {
    if (error instanceof RangeError && at + LONGEST_HEAD > bytes.length) return null;
    throw error;
  }
}

function readConversation(bytes: Uint8Array): ReadHistory["tokens"][number] | null {
  let [id, lid, token] = [NONE, NONE, NONE];
  let [at, sentAt] = [0, 0];
  readFields(bytes, (field, value) => {
    if (field === ID && typeof value !== "number") id = value;
    if (field === LID && typeof value !== "number") lid = value;
    if (field === TOKEN && typeof value !== "number") token = value;
    if (field === TOKEN_AT) at = seconds(value);
    if (field === TOKEN_SENT_AT) sentAt = seconds(value);
  });
  const chat = lid.length > 0 ? lid : id;
  const isWhole = token.length > 0 && at > 0 && chat.length > 0;
  if (!isWhole || token.length > LONGEST_TOKEN || chat.length > LONGEST_ID) return null;
  return { chat: Buffer.from(chat).toString("utf8"), token: token.toBase64(), at, sentAt: sentAt || null };
}

function seconds(value: Uint8Array | number): number {
  const time = Number(value);
  return time >= FIRST_MS ? Math.floor(time / 1000) : time || 0;
}

/** Calls `take` for each field that is bytes or a number; skips the others. */
function readFields(bytes: Uint8Array, take: (field: number, value: Uint8Array | number) => void): void {
  const reader = protobuf.Reader.create(bytes);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    const [field, type] = [tag >>> 3, tag & 7];
    if (type === LENGTH_DELIMITED) take(field, reader.bytes());
    else if (type === VARINT) take(field, Number(reader.uint64()));
    else reader.skipType(type);
  }
}

/** Field numbers in SyncdSnapshot, SyncdMutations, SyncdMutation and SyncdRecord. */
const SNAPSHOT_RECORD = 2;
const MUTATION = 1;
const OPERATION = 1;
const RECORD = 2;
const [INDEX, SETTING, KEY_ID] = [1, 2, 3];
const BLOB = 1;
const REMOVE = 1;

/** Finds the last change of the setting that is wanted; none changes nothing. */
function readSettings(
  bytes: Uint8Array,
  { form, wanted }: Extract<OutsideRequest, { read: "settings" }>,
): FoundSetting[] {
  const indexes = new Map(wanted.map(({ keyId, index }) => [keyId, Buffer.from(index, "base64")]));
  let last: FoundSetting | null = null;
  let records = 0;
  const take = (record: Uint8Array, isRemoved: boolean) => {
    if (++records > MOST_RECORDS) throw new RangeError("it has too many records");
    const keyId = inside(record, KEY_ID, BLOB).toBase64();
    const index = indexes.get(keyId);
    if (!index || !index.equals(inside(record, INDEX, BLOB))) return;
    const blob = inside(record, SETTING, BLOB);
    if (blob.length <= LONGEST_SETTING) last = { isRemoved, keyId, blob: blob.toBase64() };
  };
  readFields(bytes, (field, value) => {
    if (typeof value === "number") return;
    if (form === "snapshot" && field === SNAPSHOT_RECORD) take(value, false);
    if (form === "mutations" && field === MUTATION) take(inside(value, RECORD), numberIn(value, OPERATION) === REMOVE);
  });
  return last ? [last] : [];
}

/** The bytes of a field within fields; empty if there is none. */
export function inside(bytes: Uint8Array, ...path: number[]): Uint8Array {
  return path.reduce((within, wanted) => {
    let found: Uint8Array = NONE;
    readFields(within, (field, value) => {
      if (field === wanted && typeof value !== "number") found = value;
    });
    return found;
  }, bytes);
}

function numberIn(bytes: Uint8Array, wanted: number): number {
  let found = 0;
  readFields(bytes, (field, value) => {
    if (field === wanted && typeof value === "number") found = value;
  });
  return found;
}
