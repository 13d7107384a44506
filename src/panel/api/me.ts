/** What a person sees and changes of their own login: the password, and where they are signed in. */
import { z } from "zod";
import type { ConfirmPassword, Passwords } from "../logins/password.ts";
import type { People } from "../logins/people.ts";
import type { SignIns } from "../logins/sign_ins.ts";
import { Password } from "./entry.ts";
import type { Guard } from "./guard.ts";

interface MeDeps {
  guard: Guard;
  people: People;
  passwords: Passwords;
  confirmPassword: ConfirmPassword;
  signIns: SignIns;
}

export function addMe({ guard, people, passwords, confirmPassword, signIns }: MeDeps): void {
  guard.person({ method: "GET", path: "/me" }, async ({ visitor: { person, signInId } }) => ({
    data: {
      login: person.login,
      operator: person.accountId === null,
      hasPassword: person.passwordHash !== null,
      totp: person.totp?.confirmed ?? false,
      passkeys: person.passkeys.map(({ id, name, createdAt, lastUsedAt }) => ({ id, name, createdAt, lastUsedAt })),
      signIns: (await signIns.list(person.id)).map((row) => ({ ...row, current: row.id === signInId })),
    },
  }));

  const NewPassword = z.strictObject({ present: Password, password: Password });
  guard.person({ method: "PUT", path: "/me/password", body: NewPassword }, async ({ visitor, body, address, did }) => {
    const { person, signInId } = visitor;
    await confirmPassword(person, { password: body.present, field: "present", address });
    const passwordHash = await passwords.hash(body.password);
    await people.update(person.id, (person) => ({ ...person, passwordHash }));
    await signIns.endOthers(person.id, signInId);
    await did("password_changed");
    return { data: {} };
  });

  guard.person({ method: "DELETE", path: "/me/sign-ins/:id" }, async ({ visitor, param, did }) => {
    await signIns.end(visitor.person.id, param("id"));
    await did("sign_in_ended");
    return { data: {} };
  });
}
