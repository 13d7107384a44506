/**
 * Event data made plain, once, when it is logged: feed, stream and webhook then show the same bytes, `JSON.parse` and
 * `JSON.stringify` leave them as they are, and every JSON reader takes them (PHP refuses a lone surrogate, for one).
 */
import { Buffer } from "node:buffer";
import { sizeBound } from "../store/layers/size.ts";

/** Deeper members become null: a crafted message must not overflow anybody's stack. */
const MAX_DEPTH = 32;
/**
 * Characters of its JSON in all, escapes counted; the longest members are cut or left out past it, so that an event always
 * fits into one commit, and a page of them into memory.
 */
const MAX_CHARACTERS = 250_000;
/** The longest that one character becomes in JSON: `\u0007`. */
const LONGEST_ESCAPE = 6;
/** What a member costs beside its characters. */
const MEMBER_COST = 8;

/** A copy of `data` that holds only what JSON can say. Text past the budget is cut, further members are left out. */
export function plain<T>(data: T): T {
  const budget = { left: MAX_CHARACTERS, membersOf: Object.entries };
  const whole = copy(data, 0, budget) as T;
  if (budget.left > 0) return whole;
  // A stranger's long text must not push out who wrote it, and where.
  return copy(data, 0, { left: MAX_CHARACTERS, membersOf: shortestFirst }) as T;
}

interface Budget {
  left: number;
  /** The members of a record in the order in which they are copied. */
  membersOf(record: object): [string, unknown][];
}

function shortestFirst(record: object): [string, unknown][] {
  const members = Object.entries(record).map((member) => ({ member, size: sizeBound(member[1]) }));
  return members.sort((a, b) => a.size < b.size ? -1 : Number(a.size > b.size)).map(({ member }) => member);
}

function copy(value: unknown, depth: number, budget: Budget): unknown {
  budget.left -= MEMBER_COST;
  switch (typeof value) {
    case "string":
      return text(value, budget);
    case "number":
      // JSON has neither -0 nor NaN nor the infinities.
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

/** How many characters of the text fit, without the second half of a pair where the first does not. */
function fitting(value: string, left: number): number {
  let length = 0;
  for (const character of value.slice(0, Math.max(0, left))) {
    left -= jsonLength(character);
    if (left < 0) break;
    length += character.length;
  }
  return length;
}

/** Without the quotes, which are in what a member costs. */
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
    // A member has its whole name or is left out.
    const nameLength = jsonLength(name);
    if (nameLength > budget.left) continue;
    budget.left -= nameLength;
    const plainMember = copy(member, depth + 1, budget);
    if (plainMember !== undefined) kept[name.toWellFormed()] = plainMember;
  }
  return kept;
}
