/** A person's own login: password, second factors, and the browsers that are signed in. */
import { z } from "zod";
import { invalid, notFound } from "../../errors.ts";
import { qrDataUrl } from "../../line/line_row.ts";
import { base32, makeTotpSecret, totpUri } from "../logins/totp.ts";
import { Refusal } from "../refusal.ts";
import { Password, takeCode } from "./entry.ts";
import type { AskedByPerson } from "./guard.ts";
import type { Parts } from "./parts.ts";

/** Throws Problem validation_failed for a wrong password, which the throttle counts as it does at sign-in. */
type CheckPassword = (asked: AskedByPerson, password: string, field?: string) => Promise<void>;

export function addMe(parts: Parts): void {
  const { guard, people, passwords, signIns, throttle } = parts;

  /** Somebody at an unattended browser must not be able to change how its owner signs in, or to guess the password. */
  const checkPassword: CheckPassword = async ({ visitor: { person }, address }, password, field = "password") => {
    const { passwordHash } = person;
    if (passwordHash === null) return;
    const isRight = await throttle.attempt(
      address,
      person,
      () => passwords.verify(password, { hash: passwordHash, address }),
    );
    if (!isRight) throw invalid(field, "Wrong password.");
  };

  guard.person({ method: "GET", path: "/me" }, async ({ visitor: { person, signInId } }) => ({
    data: {
      login: person.login,
      operator: person.accountId === null,
      totp: person.totp?.confirmed ?? false,
      passkeys: person.passkeys.map(({ id, name, createdAt, lastUsedAt }) => ({ id, name, createdAt, lastUsedAt })),
      signIns: (await signIns.list(person.id)).map((row) => ({ ...row, current: row.id === signInId })),
    },
  }));

  const NewPassword = z.strictObject({ present: Password, password: Password });
  guard.person({ method: "PUT", path: "/me/password", body: NewPassword }, async (asked) => {
    const { person, signInId } = asked.visitor;
    await checkPassword(asked, asked.body.present, "present");
    const passwordHash = await passwords.hash(asked.body.password, asked.address);
    await people.update(person.id, (person) => ({ ...person, passwordHash }));
    await signIns.endOthers(person.id, signInId);
    await asked.did("password_changed");
  });

  guard.person({ method: "DELETE", path: "/me/sign-ins/:id" }, async ({ visitor, param, did }) => {
    await signIns.end(visitor.person.id, param("id"));
    await did("sign_in_ended");
  });

  addSecondFactors(parts, checkPassword);
}

/** Adds the routes for one-time codes and passkeys. */
function addSecondFactors(parts: Parts, checkPassword: CheckPassword): void {
  const { guard, people, passkeys, runtime } = parts;
  const Proof = z.strictObject({ password: Password });

  guard.person({ method: "POST", path: "/me/totp", body: Proof }, async (asked) => {
    const { person } = asked.visitor;
    await checkPassword(asked, asked.body.password);
    const secret = makeTotpSecret(runtime.random);
    await people.update(person.id, (person) => {
      if (person.totp?.confirmed) {
        throw new Refusal("totp_in_use", "An authenticator app is already set up. Remove it first.");
      }
      return { ...person, totp: { secret: people.seal.seal(secret), confirmed: false, lastStep: 0 } };
    });
    return { data: { secret: base32(secret), qr: await qrDataUrl(totpUri(secret, person.login)) } };
  });

  const Code = z.strictObject({ code: z.string().trim().max(20) });
  guard.person({ method: "POST", path: "/me/totp/confirm", body: Code }, async ({ visitor, body, did }) => {
    if (visitor.person.totp === null) throw notFound("authenticator");
    if (!await takeCode(parts, visitor.person.id, body.code)) {
      throw invalid("code", "Wrong code. Check that the phone's clock is right.");
    }
    await did("totp_added");
  });

  guard.person({ method: "POST", path: "/me/totp/remove", body: Proof }, async (asked) => {
    await checkPassword(asked, asked.body.password);
    await people.update(asked.visitor.person.id, (person) => ({ ...person, totp: null }));
    await asked.did("totp_removed");
  });

  guard.person({ method: "POST", path: "/me/passkeys/options", body: Proof }, async (asked) => {
    await checkPassword(asked, asked.body.password);
    return { data: await passkeys.registrationOptions(guard.origin(asked.c), asked.visitor.person) };
  });

  const NewPasskey = z.strictObject({ name: z.string().trim().min(1).max(100), response: z.looseObject({}) });
  guard.person({ method: "POST", path: "/me/passkeys", body: NewPasskey }, async ({ c, visitor, body, did }) => {
    await passkeys.register(guard.origin(c), visitor.person, body);
    await did("passkey_added");
  });

  guard.person({ method: "DELETE", path: "/me/passkeys/:id" }, async ({ visitor, param, did }) => {
    await people.update(visitor.person.id, (person) => {
      const left = person.passkeys.filter(({ id }) => id !== param("id"));
      if (left.length === person.passkeys.length) throw notFound("passkey");
      if (left.length === 0 && person.passwordHash === null) throw invalid("id", "It is your only way to sign in.");
      return { ...person, passkeys: left };
    });
    await did("passkey_removed");
  });
}
