/** How verifications end: by the message that holds the code, or by time. Each ends once, with its event. */
import type { EventBody } from "../event/event.ts";
import type { EventLog } from "../event/event_log.ts";
import { isOfMany } from "../message/message.ts";
import type { SessionName } from "../message/receipts.ts";
import type { Traces } from "../whatsapp/person.ts";
import { Change, isRow, type Key, type Kv, retryOnConflict, type Row, stretchOf } from "../store/kv.ts";
import type { Incoming } from "../whatsapp/incoming.ts";
import { codesIn } from "./code.ts";
import { type Verification, verificationKeys } from "./rows.ts";
import { EXPIRED, isOver } from "./verifications.ts";

/** How long one that has ended can be read. */
const KEPT_MS = 24 * 3_600_000;
/** Those that one run of the sweep looks at. */
const SWEPT_AT_ONCE = 1_000;
/** Those that one step of an erasure looks at. */
const ERASED_AT_ONCE = 50;

const TEXTS: ReadonlySet<Incoming["type"]> = new Set(["conversation", "extendedTextMessage"]);

type End = Pick<Verification, "status" | "reason" | "from">;

/**
 * Ends the verification whose code the message holds, in the change: of two messages with one code, only one can be
 * committed. Returns its event; null if the message answers none.
 */
export async function verifiedBy(
  { kv, now }: { kv: Kv; now: number },
  { lineId, change }: { lineId: string; change: Change },
  message: Incoming,
): Promise<EventBody | null> {
  const { fromMe, undecryptable, change: amends, text, type, participant, chat, number } = message;
  if (fromMe || undecryptable || amends || text === null || !TEXTS.has(type)) return null;
  if (participant !== null || isOfMany(chat)) return null;
  const row = await pendingOf(kv, lineId, codesIn(text));
  if (!row) return null;
  const { asked } = row.value;
  const from = { number, chat };
  const failed = (reason: string): End => ({ status: "failed", reason, from });
  const end: End = isOver(row.value, now)
    ? { status: "expired", reason: EXPIRED, from: null }
    : asked === null || (number !== null && withoutPrefix(asked) === withoutPrefix(number))
    ? { status: "passed", reason: null, from }
    : failed(number === null ? "number_hidden" : "other_number");
  return ended(change, row, { end, now });
}

/** Finds the pending verification of the first of the codes that the line waits for. */
async function pendingOf(kv: Kv, lineId: string, codes: readonly string[]): Promise<Row<Verification> | null> {
  if (codes.length === 0) return null;
  const found = (await kv.getMany(codes.map((code) => verificationKeys.code(lineId, code)))).find(isRow);
  if (!found) return null;
  const slot = await kv.get(verificationKeys.verification(found.value.accountId, found.value.id));
  return isRow(slot) && slot.value.status === "pending" ? slot : null;
}

/** Adds the end to the change, and returns its event. */
function ended(change: Change, row: Row<Verification>, { end, now }: { end: End; now: number }): EventBody {
  const { id, accountId } = row.value;
  close(change.check(row), row.value);
  change.set(row.key, { ...row.value, ...end }).set(verificationKeys.due(now + KEPT_MS, id), { accountId });
  return end.status === "passed" && end.from
    ? { event: "verification.passed", data: { id, ...end.from } }
    : { event: "verification.failed", data: { id, reason: end.reason ?? EXPIRED } };
}

/** Removes the rows that only a pending verification has. */
function close(change: Change, { id, accountId, sessionId, code, expiresAt }: Verification): void {
  change.delete(verificationKeys.code(sessionId, code)).delete(verificationKeys.due(expiresAt, id))
    .add(verificationKeys.open(accountId), -1);
}

interface SweepDeps {
  kv: Kv;
  events: EventLog;
  sessionName: SessionName;
}

/** Ends what is over, with its event, and removes what ended a day ago; resolves to their number. */
export async function sweepVerifications(deps: SweepDeps, now: number, signal: AbortSignal): Promise<number> {
  const { kv, events } = deps;
  let done = 0;
  for await (const due of kv.list({ prefix: verificationKeys.allDue() }, { limit: SWEPT_AT_ONCE })) {
    if (signal.aborted || Number(due.key[1]) > now) break;
    const { accountId } = due.value;
    await retryOnConflict(kv, async () => {
      const slot = await kv.get(verificationKeys.verification(accountId, String(due.key[2])));
      const change = new Change().delete(due.key);
      if (isRow(slot) && isOver(slot.value, now)) {
        const body = ended(change, slot, { end: { status: "expired", reason: EXPIRED, from: null }, now });
        const { sessionId } = slot.value;
        events.append(change, { accountId, sessionId, sessionName: await deps.sessionName(sessionId), ...body });
      } else if (isRow(slot) && slot.value.status !== "pending") {
        change.check(slot).delete(slot.key);
      }
      return { change, result: null };
    });
    events.committed(accountId);
    done++;
  }
  return done;
}

/** Removes the next verifications of the account that name the person, in the change; `next` null: all were seen. */
export async function eraseVerifications(
  kv: Kv,
  accountId: string,
  { traces, from }: { traces: Traces; from: Key | null },
): Promise<{ change: Change; next: Key | null }> {
  const all = verificationKeys.ofAccount(accountId);
  const { rows, next } = await stretchOf(kv, all, { from, limit: ERASED_AT_ONCE });
  const change = new Change();
  for (const row of rows) {
    if (!traces.isIn([row.value.asked, row.value.from, row.value.purpose])) continue;
    change.check(row).delete(row.key);
    if (row.value.status === "pending") close(change, row.value);
  }
  return { change, next };
}

/** Returns the keys of the rows by which a verification is found, besides its own. */
export function keysBeside({ id, sessionId, code, expiresAt }: Verification): Key[] {
  return [verificationKeys.code(sessionId, code), verificationKeys.due(expiresAt, id)];
}

/** A mobile prefix that people write and the network does not, or the other way round: Mexico, Argentina, Brazil. */
const MOBILE_PREFIXES: readonly (readonly [RegExp, string])[] = [
  [/^521(\d{10})$/, "52$1"],
  [/^549(\d{10})$/, "54$1"],
  [/^(55\d{2})9(\d{8})$/, "$1$2"],
];

function withoutPrefix(digits: string): string {
  return MOBILE_PREFIXES.reduce((number, [form, plain]) => number.replace(form, plain), digits);
}
