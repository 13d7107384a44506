/**
 * Erases people from accounts, step by step: first their waiting messages are cancelled, then everything that names
 * them is removed, in commits small enough not to delay sends. Each step is part of the commit that advances the
 * erasure's row, or is safe to repeat, so that an erasure continues where it stopped after a crash.
 *
 * Kept: the opt-out list (a person who opted out stays opted out), counts, and a record without the name that somebody
 * was erased.
 */
import { eraseSaid } from "../chat/sweep.ts";
import type { LoggedEvent } from "../event/event.ts";
import { eraseEvents } from "../event/sweep.ts";
import { eraseChats } from "../line/chats.ts";
import { lineIdsOf } from "../line/account_lines.ts";
import { mediaKeys } from "../media/rows.ts";
import type { MediaStore } from "../media/store.ts";
import { eraseMessages, unindexChats } from "../message/history/erase.ts";
import { ledgerOf } from "../message/history/ledger.ts";
import { LineQueue } from "../message/queue/queue.ts";
import { ringQueue } from "../message/queue/place.ts";
import { CANCELLED, type Recorder } from "../message/record.ts";
import { settleRefunds } from "../message/history/counts.ts";
import { messageKeys } from "../message/rows.ts";
import { type Runtime, sleep } from "../runtime.ts";
import type { Bell } from "../store/bell.ts";
import { Change, type Kv, type Row } from "../store/kv.ts";
import { eraseVerifications } from "../verification/ends.ts";
import { releaseEvents } from "../webhook/sweep.ts";
import type { Network } from "../whatsapp/network.ts";
import { Traces, withoutDevice } from "../whatsapp/person.ts";
import { ERASED_TOPIC, ERASURE_TOPIC, recordOf } from "./erasures.ts";
import { erasureKeys, type ErasureRow, type Place } from "./rows.ts";

/** Time that one run spends on each account. */
const RUN_MS = 1_000;
/** Pause before the next run, if one is needed. */
const REST_MS = 1_000;
/** After each step, disk and processor are left to others for this many times the step's duration. */
const PAUSE_FACTOR = 2;
/** Finds the file's id in the link of a received file. */
const FILE_ID = /\/media\/(med_[0-9a-z]+)\?/;

interface EraseDeps {
  kv: Kv;
  runtime: Pick<Runtime, "clock" | "log">;
  bell: Pick<Bell, "ring" | "ringAt">;
  network: Pick<Network, "lidOf" | "numberOf" | "erase" | "eraseSent">;
  recorder: Pick<Recorder, "cancel" | "drop">;
  media: Pick<MediaStore, "remove">;
}

/** What a step changes, which the caller commits together with the row. `place` null: the erasure is done. */
interface Step extends Partial<Pick<ErasureRow, "person" | "messages" | "events" | "files" | "again">> {
  change?: Change;
  place: Place | null;
}

/** The place of an erasure that is at this step. */
type At<Name extends Place["step"]> = Extract<Place, { step: Name }>;

/** Continues the oldest erasure of each account; resolves to the number completed. */
export async function erasePeople(deps: EraseDeps, signal: AbortSignal): Promise<number> {
  const { kv, runtime: { clock, log }, bell } = deps;
  const firsts = new Map<string, Row<ErasureRow>>();
  let left = 0;
  for await (const row of kv.list({ prefix: erasureKeys.erasures() })) {
    left++;
    const { accountId, askedAt } = row.value;
    if (askedAt < (firsts.get(accountId)?.value.askedAt ?? Infinity)) firsts.set(accountId, row);
  }
  let done = 0;
  let failed = 0;
  for (const first of firsts.values()) {
    try {
      if (await eraseOne(deps, first, signal)) done++;
    } catch (error) {
      // The others continue; the next sweep retries this one.
      failed++;
      log.warn({ erasureId: first.value.id, error: String(error) }, "an erasure failed; it is tried again");
    }
  }
  if (left > done + failed) bell.ringAt(ERASURE_TOPIC, clock.now() + REST_MS);
  return done;
}

/** Continues one erasure for a limited time; resolves to whether it is done. */
async function eraseOne(deps: EraseDeps, first: Row<ErasureRow>, signal: AbortSignal): Promise<boolean> {
  const { runtime: { clock }, bell } = deps;
  const until = clock.now() + RUN_MS;
  for (let row = first; clock.now() < until && !signal.aborted;) {
    const begun = clock.now();
    const next = await commitStep(deps, row);
    if (next === "done") bell.ring(ERASED_TOPIC + row.value.id);
    await sleep(clock, Math.max(1, PAUSE_FACTOR * (clock.now() - begun)), signal);
    if (next === null || next === "done") return next !== null;
    row = next;
  }
  return false;
}

/** Makes the next step and commits it; null if another process was faster. */
async function commitStep(deps: EraseDeps, row: Row<ErasureRow>): Promise<Row<ErasureRow> | "done" | null> {
  const { kv, runtime: { clock } } = deps;
  const { change = new Change(), place, ...progress } = await makeStep(deps, row.value);
  const after = { ...row.value, ...progress };
  change.check(row);
  if (place === null) {
    const done = recordOf({ ...after, doneAt: clock.now() });
    change.delete(row.key).set(erasureKeys.done(done.accountId, done.id), done);
    return await kv.commit(change) === null ? null : "done";
  }
  const value: ErasureRow = { ...after, place };
  const version = await kv.commit(change.set(row.key, value));
  return version === null ? null : { key: row.key, value, version };
}

function makeStep(deps: EraseDeps, row: ErasureRow): Promise<Step> {
  const { place } = row;
  switch (place.step) {
    case "waiting":
      return cancelWaiting(deps, row);
    case "messages":
      return eraseFromMessages(deps, row, place);
    case "index":
      return eraseFromIndex(deps, row, place);
    case "verifications":
      return eraseFromVerifications(deps, row, place);
    case "events":
      return eraseFromEvents(deps, row, place);
    case "chats":
    case "said":
    case "network":
      return eraseFromLines(deps, row, place);
  }
}

/** Finds the person's other identifiers and cancels their waiting messages. */
async function cancelWaiting(deps: EraseDeps, row: ErasureRow): Promise<Step> {
  const { kv, network, bell } = deps;
  const { accountId } = row;
  let { number } = row.person;
  const lids = new Set(row.person.lids);
  const lineIds = await lineIdsOf(kv, accountId);
  for (const lineId of lineIds) {
    for (const lid of lids) number ??= await network.numberOf(lineId, lid);
    const lid = number && await network.lidOf(lineId, number);
    if (lid) lids.add(lid);
  }
  const person = { number, lids: [...lids] };
  for (const lineId of lineIds) {
    const ids = await new LineQueue(kv, lineId).idsFor(new Set(new Traces(person).chats));
    await cancel(deps, ids);
    if (ids.length > 0) ringQueue(bell, lineId);
  }
  await settleRefunds(kv, accountId);
  const { messages: upTo } = await ledgerOf(kv, accountId);
  const floor = (await kv.get(messageKeys.historyFloor(accountId))).value ?? 0;
  return { person, again: false, place: { step: "messages", after: floor, upTo } };
}

/** Cancels messages; those that may have left already are only ended. */
async function cancel({ recorder }: EraseDeps, ids: readonly string[]): Promise<void> {
  const cancelled = new Set((await recorder.cancel(ids)).map(({ id }) => id));
  for (const id of ids) if (!cancelled.has(id)) await recorder.drop(id, CANCELLED);
}

async function eraseFromMessages(deps: EraseDeps, row: ErasureRow, { after, upTo }: At<"messages">): Promise<Step> {
  const { kv, network, runtime: { clock } } = deps;
  const traces = new Traces(row.person);
  const erased = await eraseMessages(kv, row.accountId, { traces, after, upTo, now: clock.now() });
  const byLine = Map.groupBy(erased.rewritten, ({ sessionId }) => sessionId);
  for (const [lineId, sent] of byLine) await network.eraseSent(lineId, sent.map(({ networkId }) => networkId));
  // Messages on their way are erased in another pass, once they have ended.
  await cancel(deps, erased.waiting);
  const { change, next } = erased;
  const place: Place = next === null ? { step: "index", upTo } : { step: "messages", after: next, upTo };
  const messages = row.messages + erased.rewritten.length;
  return { change, messages, again: row.again || erased.waiting.length > 0, place };
}

async function eraseFromIndex({ kv }: EraseDeps, row: ErasureRow, { upTo }: At<"index">): Promise<Step> {
  // Kept while a message remains to be erased, because the index is needed to find it.
  if (!row.again) await unindexChats(kv, row.accountId, { chats: new Traces(row.person).chats, upTo });
  return { place: { step: "verifications", from: null } };
}

async function eraseFromVerifications(
  { kv }: EraseDeps,
  { accountId, person }: ErasureRow,
  { from }: At<"verifications">,
): Promise<Step> {
  const { change, next } = await eraseVerifications(kv, accountId, { traces: new Traces(person), from });
  return { change, place: next === null ? { step: "events", after: null } : { step: "verifications", from: next } };
}

async function eraseFromEvents(
  { kv, runtime, media }: EraseDeps,
  row: ErasureRow,
  { after }: At<"events">,
): Promise<Step> {
  const { accountId } = row;
  const traces = new Traces(row.person);
  const among = (events: readonly LoggedEvent[]) => concerning(kv, traces, events);
  const { change, erased, next } = await eraseEvents(kv, accountId, { after, among });
  await releaseEvents({ kv, runtime }, accountId, erased);
  const fileIds = erased.flatMap(({ data }) => fileOf(data) ?? []);
  const files = await kv.getMany(fileIds.map((id) => mediaKeys.file(id)));
  let gone = 0;
  for (const { value, key } of files) {
    if (value?.accountId !== accountId) continue;
    change.delete(key);
    if (value.expiresAt !== null) change.delete(mediaKeys.fileEnd(value.expiresAt, value.id));
    await media.remove(value.id);
    gone++;
  }
  const lids = new Set([...row.person.lids, ...erased.flatMap((event) => lidOf(event, row.person.number) ?? [])]);
  return {
    change,
    events: row.events + erased.length,
    files: row.files + gone,
    person: { ...row.person, lids: [...lids] },
    // A newly found identifier may lead to more.
    again: row.again || lids.size > row.person.lids.length,
    place: next === null ? { step: "chats", lineId: null, at: null } : { step: "events", after: next },
  };
}

/** Returns the events that name the person or refer to an erased message. */
async function concerning(kv: Kv, traces: Traces, events: readonly LoggedEvent[]): Promise<LoggedEvent[]> {
  const messageIds = events.map(({ data }) => "messageId" in data ? String(data.messageId) : "");
  const ours = [...new Set(messageIds.filter((id) => id.startsWith("msg_")))];
  const slots = await kv.getMany(ours.map((id) => messageKeys.message(id)));
  const emptied = new Set(slots.flatMap(({ value }) => value?.erasedAt === undefined ? [] : [value.id]));
  return events.filter(({ data }, i) => emptied.has(messageIds[i]!) || traces.isIn(data));
}

function fileOf(data: LoggedEvent["data"]): string | null {
  const url = "media" in data ? data.media?.url : null;
  return url ? FILE_ID.exec(url)?.[1] ?? null : null;
}

/** Returns the `@lid` from which the person wrote; null if the event has none. */
function lidOf({ data }: LoggedEvent, number: string | null): string | null {
  if (number === null || !("number" in data) || data.number !== number || !("chat" in data)) return null;
  const jid = ("participant" in data ? data.participant : null) ?? data.chat;
  return jid.endsWith("@lid") ? withoutDevice(jid) : null;
}

/** The step that follows one that visits each line. */
const AFTER = { chats: "said", said: "network", network: null } as const;

/** Works through the lines by id: their chats, what was said in them, then the data they keep for the network. */
async function eraseFromLines(
  { kv, network }: EraseDeps,
  row: ErasureRow,
  { step, lineId, at }: At<"chats" | "said" | "network">,
): Promise<Step> {
  const lineIds = (await lineIdsOf(kv, row.accountId)).sort();
  const now = at === null ? lineIds.find((id) => id > (lineId ?? "")) : lineId;
  if (!now) {
    const after = AFTER[step];
    if (after) return { place: { step: after, lineId: null, at: null } };
    return { place: row.again ? { step: "waiting" } : null };
  }
  const traces = new Traces(row.person);
  if (step === "network") {
    return { place: { step, lineId: now, at: await network.erase(now, traces, at) } };
  }
  const { change, next } = step === "chats"
    ? await eraseChats(kv, now, { traces, at })
    : await eraseSaid(kv, { lineId: now, accountId: row.accountId }, { traces, at });
  return { change, place: { step, lineId: now, at: next } };
}
