/** A person's second factors: one-time codes and passkeys. */
import { z } from "zod";
import { invalid, notFound } from "../../errors.ts";
import { qrDataUrl } from "../../line/line_row.ts";
import type { Runtime } from "../../runtime.ts";
import type { Passkeys } from "../logins/passkeys.ts";
import type { Passwords } from "../logins/password.ts";
import type { People } from "../logins/people.ts";
import { base32, makeTotpSecret, totpStep, totpUri } from "../logins/totp.ts";
import type { Person } from "../rows.ts";
import type { Guard } from "./guard.ts";

interface SecondFactorDeps {
  guard: Guard;
  people: People;
  passwords: Passwords;
  passkeys: Passkeys;
  runtime: Runtime;
}

export function addSecondFactors({ guard, people, passwords, passkeys, runtime }: SecondFactorDeps): void {
  /** Somebody at an unattended browser must not change how its owner signs in. */
  async function checkPassword(person: Person, password: string): Promise<void> {
    if (person.passwordHash !== null && !await passwords.verify(password, person.passwordHash)) {
      throw invalid("password", "This is not your password.");
    }
  }
  const Proof = z.strictObject({ password: z.string().max(1000) });

  guard.person({ method: "POST", path: "/me/totp", body: Proof }, async ({ visitor: { person }, body }) => {
    await checkPassword(person, body.password);
    const secret = makeTotpSecret(runtime.random);
    await people.update(person.id, (person) => ({
      ...person,
      totp: { secret: people.seal.seal(secret), confirmed: false, lastStep: 0 },
    }));
    return { data: { secret: base32(secret), qr: await qrDataUrl(totpUri(secret, person.login)) } };
  });

  const Code = z.strictObject({ code: z.string().trim().max(20) });
  guard.person({ method: "POST", path: "/me/totp/confirm", body: Code }, async ({ visitor, body, did }) => {
    const { totp, id } = visitor.person;
    if (totp === null) throw notFound("authenticator");
    const secret = people.seal.open(totp.secret);
    const step = totpStep(secret, body.code.replaceAll(/\s/g, ""), {
      now: runtime.clock.now(),
      lastStep: totp.lastStep,
    });
    if (step === null) throw invalid("code", "The code is wrong: is the clock of the phone right?");
    await people.update(id, (person) => ({ ...person, totp: { ...totp, confirmed: true, lastStep: step } }));
    await did("totp_added");
    return { data: {} };
  });

  guard.person({ method: "POST", path: "/me/totp/remove", body: Proof }, async ({ visitor: { person }, body, did }) => {
    await checkPassword(person, body.password);
    await people.update(person.id, (person) => ({ ...person, totp: null }));
    await did("totp_removed");
    return { data: {} };
  });

  guard.person({ method: "POST", path: "/me/passkeys/options", body: Proof }, async ({ c, visitor, body }) => {
    await checkPassword(visitor.person, body.password);
    return { data: await passkeys.registrationOptions(guard.origin(c), visitor.person) };
  });

  const NewPasskey = z.strictObject({ name: z.string().trim().min(1).max(100), response: z.looseObject({}) });
  guard.person({ method: "POST", path: "/me/passkeys", body: NewPasskey }, async ({ c, visitor, body, did }) => {
    await passkeys.register(guard.origin(c), visitor.person, body);
    await did("passkey_added");
    return { data: {} };
  });

  guard.person({ method: "DELETE", path: "/me/passkeys/:id" }, async ({ visitor: { person }, param, did }) => {
    const left = person.passkeys.filter(({ id }) => id !== param("id"));
    if (left.length === person.passkeys.length) throw notFound("passkey");
    if (left.length === 0 && person.passwordHash === null) throw invalid("id", "It is your only way in.");
    await people.update(person.id, (person) => ({ ...person, passkeys: left }));
    await did("passkey_removed");
    return { data: {} };
  });
}
