/**
 * Passwords, stored as scrypt hashes. The runtime's own implementation (OpenSSL's) works off the event loop. The
 * parameters are 32 MiB and three passes: OWASP rates this as equal to 128 MiB and one pass, and small machines can
 * afford it.
 */
import { Buffer } from "node:buffer";
import { scrypt, timingSafeEqual } from "node:crypto";
import { subscriberOf } from "../../base/addresses.ts";
import { FairSemaphore } from "../../base/fair_semaphore.ts";
import { invalid } from "../../errors.ts";
import type { Random } from "../../runtime.ts";

const COST = { N: 2 ** 15, r: 8, p: 3, maxmem: 64 * 1024 ** 2 };
const HASH_BYTES = 32;
const SALT_BYTES = 16;
const LEAST_CHARACTERS = 10;
const MOST_CHARACTERS = 200;

export type Passwords = ReturnType<typeof makePasswords>;

/** `passes` is scrypt's `p` and `cost` its `N` for new hashes; old ones are verified with their own. */
export function makePasswords(random: Random, { cost = COST.N, passes = COST.p } = {}) {
  const parameters = { ...COST, N: cost, p: passes };
  // One at a time, so that a flood of attempts needs only the memory of one; addresses take turns.
  const turns = new FairSemaphore({ inAll: 1, each: 1 });
  const nobody = encode(random.bytes(SALT_BYTES), random.bytes(HASH_BYTES), parameters);

  return {
    /**
     * Returns `scrypt$N$r$p$salt$hash` of a password sent from the address. Throws Problem validation_failed for a password that is too short or too long.
     */
    async hash(password: string, address: string): Promise<string> {
      const characters = [...password].length;
      if (characters < LEAST_CHARACTERS || characters > MOST_CHARACTERS) {
        throw invalid("password", `must have ${LEAST_CHARACTERS} to ${MOST_CHARACTERS} characters`);
      }
      const salt = random.bytes(SALT_BYTES);
      return encode(salt, await turns.run(turnOf(address), () => derive(password, salt, parameters)), parameters);
    },

    /** Whether the password, sent from the address, has this hash. Equally slow without a hash, so that timing does not reveal logins. */
    async verify(password: string, { hash, address }: { hash: string | null; address: string }): Promise<boolean> {
      const [, N, r, p, salt, expected] = (hash ?? nobody).split("$");
      const cost = { ...COST, N: Number(N), r: Number(r), p: Number(p) };
      const salted = Buffer.from(salt!, "base64url");
      const found = await turns.run(turnOf(address), () => derive(password, salted, cost));
      return timingSafeEqual(found, Buffer.from(expected!, "base64url")) && hash !== null;
    },
  };
}

/** Whoever asks from one network has one turn. */
const turnOf = (address: string) => ({ tenant: subscriberOf(address) });

function encode(salt: Uint8Array, hash: Uint8Array, { N, r, p }: typeof COST): string {
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64url");
  return ["scrypt", N, r, p, text(salt), text(hash)].join("$");
}

/** Derives the hash from the password in NFKC, so that it does not depend on how a keyboard composes characters. */
function derive(password: string, salt: Uint8Array, cost: typeof COST): Promise<Buffer> {
  const text = password.slice(0, 4 * MOST_CHARACTERS).normalize("NFKC");
  return new Promise((resolve, reject) => {
    scrypt(text, salt, HASH_BYTES, cost, (error, key) => error ? reject(error) : resolve(key));
  });
}
