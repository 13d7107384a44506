/** The panel's own passkeys. A challenge is remembered for some minutes, and may be answered once. */
import { Buffer } from "node:buffer";
import { invalid } from "../../errors.ts";
import type { Runtime } from "../../runtime.ts";
import type { Person } from "../rows.ts";
import type { People } from "./people.ts";

const CHALLENGE_MS = 5 * 60_000;
const MAX_CHALLENGES = 1_000;
const MOST_PASSKEYS = 20;

/** Loaded at the first passkey: code for certificates and their formats is large. */
const webauthn = () => import("@simplewebauthn/server");

export type Passkeys = ReturnType<typeof makePasskeys>;

export function makePasskeys({ people, runtime }: { people: People; runtime: Runtime }) {
  const { clock, random } = runtime;
  const challenges = new Map<string, number>();

  function newChallenge(): Uint8Array<ArrayBuffer> {
    for (const [challenge, until] of challenges) {
      if (clock.now() >= until || challenges.size >= MAX_CHALLENGES) challenges.delete(challenge);
    }
    const bytes = random.bytes(32);
    challenges.set(Buffer.from(bytes).toString("base64url"), clock.now() + CHALLENGE_MS);
    return bytes;
  }

  /** Whether this challenge was ours, and is not answered yet. */
  function take(challenge: string): boolean {
    const until = challenges.get(challenge) ?? 0;
    challenges.delete(challenge);
    return clock.now() < until;
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

    /** Throws Problem validation_failed for a response that does not fit what was asked. */
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
      if (await people.byPasskey(id)) throw invalid("response", "This passkey is somebody's already.");
      if (person.passkeys.length >= MOST_PASSKEYS) throw invalid("response", "Remove a passkey first.");
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

    /** The person who has signed; null when there is none, or the signature is wrong. */
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
