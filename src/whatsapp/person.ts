/** A person as the network names one, and where in texts, records and keys that name stands. */

export interface Person {
  /** Digits; null where only `@lid`s are known. */
  number: string | null;
  /** JIDs ending in `@lid`. */
  lids: readonly string[];
}

/** The JID of the person whose device, or of the chat, it names. */
export function withoutDevice(jid: string): string {
  return jid.replace(/:\d+@/, "@");
}

/** What stands in place of a name that was erased. */
const ERASED = "[erased]";
/** People write a number in groups of digits. */
const BETWEEN_DIGITS = "[\\s().-]*";

/** Finds a person's names. The id of an old group holds the number of who made it: that names the group. */
export class Traces {
  /** What keys of the Signal protocol name the person by: a `@lid` by its digits alone. */
  readonly users: readonly string[];
  readonly #person: Person;
  /** In texts and JIDs. */
  readonly #names: RegExp;
  readonly #users: RegExp;

  constructor(person: Person) {
    this.#person = person;
    const { number, lids } = person;
    this.users = [...lids.map((lid) => lid.slice(0, lid.indexOf("@"))), ...number ? [number] : []];
    this.#names = namesOf(person);
    this.#users = new RegExp(`(?<![A-Za-z0-9])(?:${this.users.join("|")})(?![A-Za-z0-9])`);
  }

  /** The chats that the person is written to in, as `chatOf` names them, and their JIDs. */
  get chats(): string[] {
    const { number, lids } = this.#person;
    return [...number ? [number, `${number}@s.whatsapp.net`] : [], ...lids];
  }

  /** Whether the number, chat or JID is the person's own, on whatever device. */
  isOf(jid: string): boolean {
    return this.chats.includes(withoutDevice(jid));
  }

  /** Whether a text in the value, however deep, names the person. */
  isIn(value: unknown): boolean {
    if (typeof value === "string") return value.search(this.#names) >= 0;
    if (value === null || typeof value !== "object" || ArrayBuffer.isView(value)) return false;
    return Object.entries(value).some(([name, member]) => this.isIn(name) || this.isIn(member));
  }

  isInKey(id: string): boolean {
    return this.#users.test(id);
  }

  /** A copy in which no text names the person. */
  redact<T>(value: T): T {
    return this.#redacted(value) as T;
  }

  #redacted(value: unknown): unknown {
    if (typeof value === "string") return value.replace(this.#names, ERASED);
    if (value === null || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
    if (Array.isArray(value)) return value.map((member) => this.#redacted(member));
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [this.#redacted(name), this.#redacted(member)]),
    );
  }
}

/** A pattern of the person's names, in texts and JIDs. */
export function namesOf({ number, lids }: Person): RegExp {
  const names = lids.map((lid) => `${lid.slice(0, lid.indexOf("@"))}(?::\\d+)?@lid`);
  if (number) names.push(`${[...number].join(BETWEEN_DIGITS)}(?![A-Za-z0-9])(?!-\\d+@g\\.us)`);
  return new RegExp(`(?<![A-Za-z0-9])(?:${names.join("|")})`, "g");
}
