/**
 * Reduces event data to plain JSON once, when it is logged. Feed, stream and webhook then show the same bytes, which
 * survive `JSON.parse` and `JSON.stringify` unchanged and are accepted by every JSON parser (PHP's refuses lone
 * surrogates, for example).
 */
import { Buffer } from "node:buffer";
import { sizeBound } from "../store/limits.ts";

/** Members nested deeper become null, so that a crafted message cannot overflow a reader's stack. */
const MAX_DEPTH = 32;
/**
 * Total characters of the JSON, escapes included. Beyond it the longest members are truncated or left out, so that an
 * event always fits into one commit, and a page of events into memory.
 */
const MAX_CHARACTERS = 250_000;
/** The longest JSON form of a character: `\u0007`. */
const LONGEST_ESCAPE = 6;
/** Members of a record in which a list is looked for. */
const MOST_LOOKED_AT = 64;
/** Characters counted for a member beside its own. */
const MEMBER_COST = 8;

/**
 * Returns a copy of `data` that holds only plain JSON. Beyond the budget, text is truncated and members are left out.
 */
export function plain<T>(data: T): T {
  const budget = { left: MAX_CHARACTERS, membersOf: Object.entries };
  const whole = copy(data, 0, budget);
  // A stranger's long text must not displace who wrote it, and where.
  const fitted = budget.left > 0 ? whole : copy(data, 0, { left: MAX_CHARACTERS, membersOf: shortestFirst });
  return fitted as T;
}

interface Budget {
  left: number;
  /** The members of a record in the order in which they are copied. */
  membersOf(record: object): [string, unknown][];
}

function shortestFirst(record: object): [string, unknown][] {
  const members = Object.entries(record).map((member) => ({ member, size: sizeOf(member[1]) }));
  return members.sort((a, b) => a.size < b.size ? -1 : Number(a.size > b.size)).map(({ member }) => member);
}

/** An upper bound of the size. Infinity for a list that does not fit anyway: visiting its members would take long. */
function sizeOf(value: unknown): number {
  const isRecord = typeof value === "object" && value !== null && !Array.isArray(value);
  const inside = isRecord ? Object.values(value) : [];
  const isLong = [value, ...inside.slice(0, MOST_LOOKED_AT)].some((one) =>
    Array.isArray(one) && one.length * MEMBER_COST > MAX_CHARACTERS
  );
  return isLong ? Infinity : sizeBound(value);
}

function copy(value: unknown, depth: number, budget: Budget): unknown {
  budget.left -= MEMBER_COST;
  switch (typeof value) {
    case "string":
      return text(value, budget);
    case "number":
      // JSON has no -0, NaN or infinities.
      return Number.isFinite(value) ? value + 0 : null;
    case "bigint":
      return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
    case "boolean":
      return value;
    case "object":
      break;
    default:
      return undefined;
  }
  if (value === null || depth >= MAX_DEPTH) return null;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Uint8Array) return text(Buffer.from(value).toString("base64"), budget);
  if (Array.isArray(value)) return list(value, depth, budget);
  return record(value, depth, budget);
}

function text(value: string, budget: Budget): string {
  const kept = value.length * LONGEST_ESCAPE <= budget.left ? value : value.slice(0, fitting(value, budget.left));
  budget.left -= jsonLength(kept);
  return kept.toWellFormed();
}

/** Returns how many characters of the text fit, without splitting a surrogate pair. */
function fitting(value: string, left: number): number {
  let length = 0;
  for (const character of value.slice(0, Math.max(0, left))) {
    left -= character.length === 2 || isPlain(character) ? character.length : jsonLength(character);
    if (left < 0) break;
    length += character.length;
  }
  return length;
}

/** Whether the character is itself in JSON: a quarter of a million calls of the serialiser take tenths of a second. */
function isPlain(character: string): boolean {
  const code = character.charCodeAt(0);
  return code >= 0x20 && code !== 0x22 && code !== 0x5c && (code < 0xd800 || code > 0xdfff);
}

/** Length as JSON without the quotes, which are part of `MEMBER_COST`. */
function jsonLength(text: string): number {
  return JSON.stringify(text).length - 2;
}

function list(values: readonly unknown[], depth: number, budget: Budget): unknown[] {
  const kept: unknown[] = [];
  for (const value of values) {
    if (budget.left <= 0) break;
    kept.push(copy(value, depth + 1, budget) ?? null);
  }
  return kept;
}

function record(value: object, depth: number, budget: Budget): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const [name, member] of budget.membersOf(value)) {
    if (budget.left <= 0) break;
    // Assigning to this name would set the prototype.
    if (name === "__proto__") continue;
    // Names are never truncated: a member keeps its whole name or is left out.
    const nameLength = jsonLength(name);
    if (nameLength > budget.left) continue;
    budget.left -= nameLength;
    const plainMember = copy(member, depth + 1, budget);
    if (plainMember !== undefined) kept[name.toWellFormed()] = plainMember;
  }
  return kept;
}
