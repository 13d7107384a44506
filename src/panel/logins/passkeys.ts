/**
 * The panel's own passkeys. A challenge is valid for some minutes and for one answer. The process that receives the
 * answer may not be the one that issued the challenge. So challenges are not stored: each holds its expiry time,
 * sealed. Only the fact that a challenge was answered is stored.
 */
import { Buffer } from "node:buffer";
import { invalid } from "../../errors.ts";
import type { Runtime } from "../../runtime.ts";
import { Change, type Kv } from "../../store/kv.ts";
import { unsealed } from "../../store/seal.ts";
import { panelKeys, type Person } from "../rows.ts";
import type { People } from "./people.ts";
import { hashToken } from "./secrets.ts";

const CHALLENGE_MS = 5 * 60_000;
const MOST_PASSKEYS = 20;

/** Loaded on first use, because its code for certificates and their formats is large. */
const webauthn = () => import("@simplewebauthn/server");

export function makePasskeys({ kv, people, runtime }: { kv: Kv; people: People; runtime: Pick<Runtime, "clock"> }) {
  const { clock } = runtime;

  function newChallenge(): Uint8Array<ArrayBuffer> {
    const until = new DataView(new ArrayBuffer(8));
    until.setBigUint64(0, BigInt(clock.now() + CHALLENGE_MS));
    return people.seal.seal(new Uint8Array(until.buffer));
  }

  /** Returns when the challenge expires; 0 if it is not ours. */
  function untilOf(challenge: Uint8Array): number {
    const until = unsealed(people.seal, challenge);
    return until?.length === 8 ? Number(new DataView(until.buffer).getBigUint64(0)) : 0;
  }

  /** Whether this challenge is ours and still valid, and this is its first answer. Records the answer. */
  async function take(text: string): Promise<boolean> {
    const challenge = Buffer.from(text, "base64url");
    const until = untilOf(challenge);
    if (clock.now() >= until) return false;
    const answered = panelKeys.answered(hashToken(challenge.toString("base64url")));
    return await kv.commit(new Change().checkAbsent(answered).set(answered, until)) !== null;
  }

  const expected = (origin: URL) => ({
    expectedChallenge: take,
    expectedOrigin: origin.origin,
    expectedRPID: origin.hostname,
  });

  return {
    registrationOptions: async (origin: URL, person: Person) =>
      (await webauthn()).generateRegistrationOptions({
        rpName: "Paloma",
        rpID: origin.hostname,
        userName: person.login,
        userID: new TextEncoder().encode(person.id),
        challenge: newChallenge(),
        excludeCredentials: person.passkeys.map(({ id, transports }) => ({ id, transports })),
        authenticatorSelection: { residentKey: "required", userVerification: "required" },
      }),

    /** Registers a passkey. Throws Problem validation_failed if the response does not match the challenge. */
    async register(
      origin: URL,
      person: Person,
      { name, response }: { name: string; response: unknown },
    ): Promise<Person> {
      const { verifyRegistrationResponse } = await webauthn();
      const verified = await verifyRegistrationResponse({ response: response as never, ...expected(origin) })
        .catch((error: Error) => {
          throw invalid("response", error.message);
        });
      if (!verified.verified) throw invalid("response", "The passkey could not be verified.");
      const { id, publicKey, counter, transports = [] } = verified.registrationInfo.credential;
      if (await people.byPasskey(id)) throw invalid("response", "This passkey is already registered.");
      if (person.passkeys.length >= MOST_PASSKEYS) {
        throw invalid("response", "You have the maximum number of passkeys. Remove one first.");
      }
      const createdAt = clock.now();
      const passkey = { id, name, publicKey, counter, transports, createdAt, lastUsedAt: null };
      return await people.update(person.id, (person) => ({ ...person, passkeys: [...person.passkeys, passkey] }));
    },

    signInOptions: async (origin: URL) =>
      (await webauthn()).generateAuthenticationOptions({
        rpID: origin.hostname,
        challenge: newChallenge(),
        userVerification: "required",
      }),

    /** Resolves to the person who has signed; null if the passkey is unknown or the signature is wrong. */
    async signIn(origin: URL, response: { id: string }): Promise<Person | null> {
      const person = await people.byPasskey(response.id);
      const passkey = person?.passkeys.find(({ id }) => id === response.id);
      if (!person || !passkey) return null;
      const { id, publicKey, counter } = passkey;
      const { verifyAuthenticationResponse } = await webauthn();
      const verified = await verifyAuthenticationResponse({
        response: response as never,
        ...expected(origin),
        credential: { id, publicKey, counter },
      }).catch(() => null);
      if (!verified?.verified) return null;
      const { newCounter } = verified.authenticationInfo;
      return await people.update(person.id, (person) => ({
        ...person,
        passkeys: person.passkeys.map((known) =>
          known.id === id ? { ...known, counter: newCounter, lastUsedAt: clock.now() } : known
        ),
      }));
    },
  };
}
