/** The names by which the network identifies a person, and how to find them in texts, records and keys. */

export interface Person {
  /** Digits; null if only `@lid`s are known. */
  number: string | null;
  /** JIDs ending in `@lid`. */
  lids: readonly string[];
}

/** Strips the device from a JID, leaving that of the person or chat. */
export function withoutDevice(jid: string): string {
  return jid.replace(/:\d+@/, "@");
}

/** The text that replaces an erased name. */
const ERASED = "[erased]";
/** Separators that people type between groups of digits. */
const BETWEEN_DIGITS = "[\\s().-]*";

/**
 * Finds every name of a person. The id of an old group contains its creator's number; that counts as the group's name,
 * not the person's.
 */
export class Traces {
  /** The names that keys of the Signal protocol use: the digits of the number, and of each `@lid`. */
  readonly users: readonly string[];
  readonly #person: Person;
  /** The person's names in texts and JIDs. */
  readonly #names: RegExp;
  readonly #users: RegExp;

  constructor(person: Person) {
    this.#person = person;
    const { number, lids } = person;
    this.users = [...lids.map((lid) => lid.slice(0, lid.indexOf("@"))), ...number ? [number] : []];
    this.#names = namesOf(person);
    this.#users = new RegExp(`(?<![A-Za-z0-9])(?:${this.users.join("|")})(?![A-Za-z0-9])`);
  }

  /** The person's chats, as `chatOf` in `message/message.ts` names them and as JIDs. */
  get chats(): string[] {
    const { number, lids } = this.#person;
    return [...number ? [number, `${number}@s.whatsapp.net`] : [], ...lids];
  }

  /** Whether the number, chat or JID belongs to the person, on any device. */
  isOf(jid: string): boolean {
    return this.chats.includes(withoutDevice(jid));
  }

  /** Whether any text in the value, at any depth, names the person. */
  isIn(value: unknown): boolean {
    if (typeof value === "string") return value.search(this.#names) >= 0;
    if (value === null || typeof value !== "object" || ArrayBuffer.isView(value)) return false;
    return Object.entries(value).some(([name, member]) => this.isIn(name) || this.isIn(member));
  }

  isInKey(id: string): boolean {
    return this.#users.test(id);
  }

  /** Returns a copy in which no text names the person. */
  redact<T>(value: T): T;
  redact(value: unknown): unknown {
    if (typeof value === "string") return value.replace(this.#names, ERASED);
    if (value === null || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
    if (Array.isArray(value)) return value.map((member) => this.redact(member));
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [this.redact(name), this.redact(member)]),
    );
  }
}

/** Returns a pattern that matches the person's names in texts and JIDs. */
export function namesOf({ number, lids }: Person): RegExp {
  const names = lids.map((lid) => `${lid.slice(0, lid.indexOf("@"))}(?::\\d+)?@lid`);
  if (number) names.push(`${[...number].join(BETWEEN_DIGITS)}(?![A-Za-z0-9])(?!-\\d+@g\\.us)`);
  return new RegExp(`(?<![A-Za-z0-9])(?:${names.join("|")})`, "g");
}
