/** The people who may use the panel: operators of the gateway, and members of an account. */
import { notFound } from "../../errors.ts";
import type { Runtime } from "../../runtime.ts";
import { Change, isRow, type Kv, retryOnConflict, type Row } from "../../store/kv.ts";
import type { Seal } from "../../store/seal.ts";
import { panelKeys, type Person } from "../rows.ts";
import { Refusal } from "../refusal.ts";

export interface People {
  get(personId: string): Promise<Person | null>;
  byLogin(login: string): Promise<Person | null>;
  byPasskey(credentialId: string): Promise<Person | null>;
  /** Members of the account; null: operators. */
  list(accountId: string | null): Promise<Person[]>;
  hasOperator(): Promise<boolean>;
  /** Adds the new person to the change. Throws Refusal login_taken. */
  create(change: Change, options: NewPerson): Promise<Person>;
  /** Throws Problem not_found. */
  update(personId: string, edit: (person: Person) => Person): Promise<Person>;
  /** Removes the person with all sign-ins. Throws Problem not_found. */
  remove(personId: string): Promise<void>;
  seal: Seal;
}

type NewPerson = Pick<Person, "login" | "accountId" | "passwordHash">;

export function makePeople({ kv, seal, runtime }: { kv: Kv; seal: Seal; runtime: Runtime }): People {
  /** The last operator is never removed. */
  let operatorSeen = false;

  async function get(personId: string): Promise<Person | null> {
    return (await kv.get(panelKeys.person(personId))).value;
  }

  async function row(personId: string): Promise<Row<Person>> {
    const slot = await kv.get(panelKeys.person(personId));
    if (!isRow(slot)) throw notFound("person");
    return slot;
  }

  async function list(accountId: string | null): Promise<Person[]> {
    const people: Person[] = [];
    for await (const { value } of kv.list({ prefix: panelKeys.people() })) {
      if (value.accountId === accountId) people.push(value);
    }
    return people;
  }

  async function byIndex(personId: string | null): Promise<Person | null> {
    return personId === null ? null : await get(personId);
  }

  return {
    get,
    list,
    seal,
    byLogin: async (login) => await byIndex((await kv.get(panelKeys.login(login))).value),
    byPasskey: async (credentialId) => await byIndex((await kv.get(panelKeys.passkey(credentialId))).value),

    async hasOperator() {
      operatorSeen ||= (await list(null)).length > 0;
      return operatorSeen;
    },

    async create(change, { login, accountId, passwordHash }) {
      const slot = await kv.get(panelKeys.login(login));
      if (slot.value !== null) throw new Refusal("login_taken", `Somebody else signs in as ${login}.`);
      const person: Person = {
        id: runtime.ids.next("usr"),
        login,
        accountId,
        passwordHash,
        totp: null,
        passkeys: [],
        createdAt: runtime.clock.now(),
        lastSignInAt: null,
      };
      change.check(slot).set(panelKeys.login(login), person.id).set(panelKeys.person(person.id), person);
      return person;
    },

    update: (personId, edit) =>
      retryOnConflict(kv, async () => {
        const before = await row(personId);
        const person = edit(before.value);
        const change = new Change().check(before).set(panelKeys.person(personId), person);
        const kept = new Set(person.passkeys.map(({ id }) => id));
        for (const { id } of before.value.passkeys) if (!kept.has(id)) change.delete(panelKeys.passkey(id));
        for (const { id } of person.passkeys) change.set(panelKeys.passkey(id), personId);
        return { change, result: person };
      }),

    async remove(personId) {
      await retryOnConflict(kv, async () => {
        const before = await row(personId);
        const { login, passkeys } = before.value;
        const change = new Change().check(before).delete(panelKeys.person(personId)).delete(panelKeys.login(login));
        for (const { id } of passkeys) change.delete(panelKeys.passkey(id));
        return { change, result: undefined };
      });
      for await (const { key } of kv.list({ prefix: panelKeys.signInsOf(personId) })) {
        await kv.commit(new Change().delete(key));
      }
    },
  };
}
