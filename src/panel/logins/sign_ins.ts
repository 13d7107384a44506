/** The browsers in which people are signed in: one row per browser, by the hash of the token in its cookie. */
import { subscriberOf } from "../../base/addresses.ts";
import { notFound } from "../../errors.ts";
import type { Runtime } from "../../runtime.ts";
import { Change, type Kv, retryOnConflict } from "../../store/kv.ts";
import { Refusal } from "../refusal.ts";
import { panelKeys, type Person, type SignIn } from "../rows.ts";
import type { People } from "./people.ts";
import { hashToken, makeToken } from "./secrets.ts";

const LONGEST_MS = 30 * 24 * 60 * 60_000;
const IDLE_MS = 24 * 60 * 60_000;
/** `seenAt` is updated at most this often, not at each request. */
const SEEN_EVERY_MS = 5 * 60_000;
const MOST_ADDRESSES = 10;

/** A person who is signed in, in one browser. */
export interface Visitor {
  person: Person;
  /** Hash of the browser's token, the id of the sign-in. */
  signInId: string;
}

export type SignIns = ReturnType<typeof makeSignIns>;

export function makeSignIns({ kv, people, runtime }: { kv: Kv; people: People; runtime: Runtime }) {
  const { clock } = runtime;

  async function list(personId: string) {
    const found: (SignIn & { id: string })[] = [];
    for await (const { key, value } of kv.list({ prefix: panelKeys.signInsOf(personId) })) {
      if (!isOver(value, clock.now())) found.push({ ...value, id: String(key.at(-1)) });
    }
    return found.sort((a, b) => b.seenAt - a.seenAt);
  }

  return {
    list,

    /**
     * Resolves to the token for the browser's cookie. Throws Refusal sign_in_failed if the password has changed since
     * it was verified.
     */
    async begin(person: Person, { address, userAgent }: Pick<SignIn, "address" | "userAgent">): Promise<string> {
      const token = `${person.id}.${makeToken(runtime.random)}`;
      const now = clock.now();
      const row = { personId: person.id, address, userAgent: userAgent.slice(0, 200), createdAt: now, seenAt: now };
      await retryOnConflict(kv, async () => {
        const slot = await kv.get(panelKeys.person(person.id));
        if (slot.value === null || slot.value.passwordHash !== person.passwordHash) {
          throw new Refusal("sign_in_failed", "The username or password is incorrect.");
        }
        const before = slot.value.addresses ?? [];
        const addresses = [...new Set([subscriberOf(address), ...before])].slice(0, MOST_ADDRESSES);
        // Checks the person in the same commit: a change of the password either ends this sign-in or makes it fail.
        const change = new Change().check(slot).set(panelKeys.signIn(person.id, hashToken(token)), row)
          .set(panelKeys.person(person.id), { ...slot.value, lastSignInAt: now, addresses });
        return { change, result: undefined };
      });
      return token;
    },

    /** Resolves to the person to whom the token belongs; null if it is unknown or expired. */
    async visitor(token: string): Promise<Visitor | null> {
      const personId = token.split(".")[0]!;
      if (personId.length > 40) return null;
      const signInId = hashToken(token);
      const slot = await kv.get(panelKeys.signIn(personId, signInId));
      const now = clock.now();
      if (slot.value === null || isOver(slot.value, now)) return null;
      const person = await people.get(personId);
      if (person === null) return null;
      if (now - slot.value.seenAt >= SEEN_EVERY_MS) {
        await kv.commit(
          new Change().check(slot).set(panelKeys.signIn(personId, signInId), { ...slot.value, seenAt: now }),
        );
      }
      return { person, signInId };
    },

    /** Ends a sign-in. Throws Problem not_found. */
    async end(personId: string, signInId: string): Promise<void> {
      const slot = await kv.get(panelKeys.signIn(personId, signInId));
      if (slot.value === null) throw notFound("sign-in");
      await kv.commit(new Change().delete(slot.key));
    },

    /** Ends all sign-ins of the person except `keep`. */
    async endOthers(personId: string, keep: string | null): Promise<void> {
      for (const { id } of await list(personId)) {
        if (id !== keep) await kv.commit(new Change().delete(panelKeys.signIn(personId, id)));
      }
    },
  };
}

export function isOver({ createdAt, seenAt }: SignIn, now: number): boolean {
  return now - createdAt >= LONGEST_MS || now - seenAt >= IDLE_MS;
}
