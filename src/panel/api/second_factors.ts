/** A person's second factors: one-time codes and passkeys. */
import { z } from "zod";
import { invalid, notFound } from "../../errors.ts";
import { qrDataUrl } from "../../line/line_row.ts";
import type { Runtime } from "../../runtime.ts";
import type { Passkeys } from "../logins/passkeys.ts";
import type { ConfirmPassword } from "../logins/password.ts";
import type { People } from "../logins/people.ts";
import { base32, makeTotpSecret, totpStep, totpUri } from "../logins/totp.ts";
import { Password } from "./entry.ts";
import type { AskedByPerson, Guard } from "./guard.ts";

interface SecondFactorDeps {
  guard: Guard;
  people: People;
  confirmPassword: ConfirmPassword;
  passkeys: Passkeys;
  runtime: Runtime;
}

export function addSecondFactors({ guard, people, confirmPassword, passkeys, runtime }: SecondFactorDeps): void {
  const Proof = z.strictObject({ password: Password });

  async function checkProof(
    { visitor: { person }, body, address }: AskedByPerson<z.infer<typeof Proof>>,
  ): Promise<void> {
    await confirmPassword(person, { password: body.password, field: "password", address });
  }

  guard.person({ method: "POST", path: "/me/totp", body: Proof }, async (asked) => {
    await checkProof(asked);
    const { person } = asked.visitor;
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

  guard.person({ method: "POST", path: "/me/totp/remove", body: Proof }, async (asked) => {
    await checkProof(asked);
    await people.update(asked.visitor.person.id, (person) => ({ ...person, totp: null }));
    await asked.did("totp_removed");
    return { data: {} };
  });

  guard.person({ method: "POST", path: "/me/passkeys/options", body: Proof }, async (asked) => {
    await checkProof(asked);
    return { data: await passkeys.registrationOptions(guard.origin(asked.c), asked.visitor.person) };
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
