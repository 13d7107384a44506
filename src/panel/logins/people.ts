/** The people who may use the panel: operators of the gateway, and members of accounts. */
import { notFound } from "../../errors.ts";
import type { Runtime } from "../../runtime.ts";
import { Change, isRow, type Kv, retryOnConflict, type Row } from "../../store/kv.ts";
import type { Seal } from "../../store/seal.ts";
import { panelKeys, type Person } from "../rows.ts";
import { Refusal } from "../refusal.ts";

type NewPerson = Pick<Person, "login" | "name" | "accountId" | "role" | "passwordHash">;

export type People = ReturnType<typeof makePeople>;

export function makePeople({ kv, seal, runtime }: { kv: Kv; seal: Seal; runtime: Runtime }) {
  /** Remains true, because the last operator is never removed. */
  let operatorSeen = false;

  async function get(personId: string): Promise<Person | null> {
    return (await kv.get(panelKeys.person(personId))).value;
  }

  async function row(personId: string): Promise<Row<Person>> {
    const slot = await kv.get(panelKeys.person(personId));
    if (!isRow(slot)) throw notFound("person");
    return slot;
  }

  /** Lists the members of the account; null: the operators. */
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
    byLogin: async (login: string) => await byIndex((await kv.get(panelKeys.login(login))).value),
    byPasskey: async (credentialId: string) => await byIndex((await kv.get(panelKeys.passkey(credentialId))).value),

    async hasOperator(): Promise<boolean> {
      operatorSeen ||= (await list(null)).length > 0;
      return operatorSeen;
    },

    /** Adds the creation of a person to `change`. Throws Refusal login_taken. */
    async create(change: Change, { login, name, accountId, role, passwordHash }: NewPerson): Promise<Person> {
      const slot = await kv.get(panelKeys.login(login));
      if (slot.value !== null) throw new Refusal("login_taken", `The username ${login} is already taken.`);
      const person: Person = {
        id: runtime.ids.next("usr"),
        login,
        ...(name !== undefined && { name }),
        accountId,
        ...(role && { role }),
        passwordHash,
        totp: null,
        passkeys: [],
        createdAt: runtime.clock.now(),
        lastSignInAt: null,
      };
      change.check(slot).set(panelKeys.login(login), person.id).set(panelKeys.person(person.id), person);
      return person;
    },

    /** Edits a person. Throws Problem not_found. */
    update: (personId: string, edit: (person: Person) => Person): Promise<Person> =>
      retryOnConflict(kv, async () => {
        const before = await row(personId);
        const person = edit(before.value);
        const change = new Change().check(before).set(panelKeys.person(personId), person);
        const kept = new Set(person.passkeys.map(({ id }) => id));
        for (const { id } of before.value.passkeys) if (!kept.has(id)) change.delete(panelKeys.passkey(id));
        for (const { id } of person.passkeys) change.set(panelKeys.passkey(id), personId);
        return { change, result: person };
      }),

    /**
     * Removes the person with all sign-ins, if `by` still exists: of two people who remove each other, one stays.
     * Throws Problem not_found, Refusal sign_in_required.
     */
    async remove(personId: string, by: Person): Promise<void> {
      await retryOnConflict(kv, async () => {
        const remover = await kv.get(panelKeys.person(by.id));
        if (remover.value === null) throw new Refusal("sign_in_required", "Sign in first.");
        const before = await row(personId);
        const { login, passkeys } = before.value;
        const change = new Change().check(before).delete(panelKeys.person(personId)).delete(panelKeys.login(login));
        if (by.id !== personId) change.check(remover);
        for (const { id } of passkeys) change.delete(panelKeys.passkey(id));
        return { change, result: undefined };
      });
      for await (const { key } of kv.list({ prefix: panelKeys.signInsOf(personId) })) {
        await kv.commit(new Change().delete(key));
      }
    },
  };
}
