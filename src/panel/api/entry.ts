/** Joining by a link (the first operator, invitations), sign-in by password, one-time code or passkey, and sign-out. */
import { z } from "zod";
import { EVENT_NAMES, USUAL_EVENTS } from "../../event/event.ts";
import { Change } from "../../store/kv.ts";
import { totpStep } from "../logins/totp.ts";
import { VERSION } from "../../shipped.ts";
import { Refusal } from "../refusal.ts";
import type { Person } from "../rows.ts";
import type { Asked } from "./guard.ts";
import type { Parts } from "./parts.ts";

const Login = z.string().trim().toLowerCase().min(2).max(100).regex(
  /^[^\s\p{C}]+$/u,
  "must be a name or an e-mail address, without spaces",
);
/** A password as typed; the rules on its length apply only when it is set. */
export const Password = z.string().max(1000);
/** The limit of WebAuthn, 1,023 bytes, in base64. */
const MAX_PASSKEY_ID = 1_364;
export const Token = z.string().min(1).max(200);

/**
 * Checks a one-time code of the person's authenticator app, and confirms the app if it was just set up. The code is used
 * up, so that nobody who saw it can use it again.
 */
export async function takeCode({ people, runtime }: Parts, personId: string, code: string): Promise<boolean> {
  let isRight = false;
  await people.update(personId, (person) => {
    const { totp } = person;
    const options = { now: runtime.clock.now(), lastStep: totp?.lastStep ?? 0 };
    const step = totp && totpStep(people.seal.open(totp.secret), code.replaceAll(/\s/g, ""), options);
    isRight = step !== null;
    return step === null ? person : { ...person, totp: { ...totp!, confirmed: true, lastStep: step } };
  });
  return isRight;
}

export function addEntry(parts: Parts): void {
  const { guard, kv, people, passwords, passkeys, signIns, links, throttle, audit, accounts } = parts;

  const invitation = (token: string) => links.find(token, "operator", "member");

  async function letIn({ c, address }: Asked, person: Person, how: string) {
    guard.setToken(c, await signIns.begin(person, { address, userAgent: c.req.header("user-agent") ?? "" }));
    const { id: personId, login, accountId } = person;
    await audit.write({ personId, login, address, accountId, action: how });
    return { data: { login, accountId } };
  }

  async function failed({ address }: Asked, login: string, detail: string): Promise<never> {
    await audit.write({ personId: null, login, address, accountId: null, action: "sign_in_failed" });
    throw new Refusal("sign_in_failed", detail);
  }

  guard.open({ method: "GET", path: "/state" }, async ({ c }) => {
    const visitor = await guard.visitorOf(c);
    const account = visitor?.person.accountId ? await accounts.get(visitor.person.accountId) : null;
    return {
      data: {
        version: VERSION,
        hasOperator: await people.hasOperator(),
        events: EVENT_NAMES,
        usualEvents: USUAL_EVENTS,
        person: visitor && {
          login: visitor.person.login,
          operator: visitor.person.accountId === null,
          accountId: visitor.person.accountId,
          role: visitor.person.role ?? null,
          accountName: account?.name ?? null,
        },
      },
    };
  });

  guard.open({ method: "POST", path: "/welcome", body: z.strictObject({ token: Token }) }, async ({ body }) => {
    const { value } = await invitation(body.token);
    const account = value.kind === "member" ? await accounts.get(value.accountId) : null;
    return { data: { kind: value.kind, accountName: account?.name ?? null } };
  });

  const Join = z.strictObject({ token: Token, login: Login, password: Password });
  guard.open({ method: "POST", path: "/join", body: Join }, async (asked) => {
    const { token, login, password } = asked.body;
    await invitation(token);
    const passwordHash = await passwords.hash(password, asked.address);
    // Read the link again, because hashing took a while. The commit checks that nobody used it in the meantime.
    const link = await invitation(token);
    const { name } = link.value;
    const { accountId, role } = link.value.kind === "member" ? link.value : { accountId: null };
    const change = new Change().check(link).delete(link.key);
    const person = await people.create(change, { login, name, accountId, role, passwordHash });
    if (!await kv.commit(change)) throw new Refusal("link_dead", "This link has just been used.");
    return await letIn(asked, person, "joined");
  });

  const SignIn = z.strictObject({ login: Login, password: Password, code: z.string().trim().max(20).optional() });
  guard.open({ method: "POST", path: "/sign-in", body: SignIn }, async (asked) => {
    const { login, password, code } = asked.body;
    const person = await people.byLogin(login);
    const attempt = (prove: () => Promise<boolean>) => throttle.attempt(asked.address, person ?? { login }, prove);
    const isRight = await attempt(() =>
      passwords.verify(password, { hash: person?.passwordHash ?? null, address: asked.address })
    );
    if (!isRight || person === null) return await failed(asked, login, "The username or password is incorrect.");
    if (person.totp?.confirmed) {
      if (!code) throw new Refusal("second_factor_required", "Enter the code of your authenticator app.");
      const isTaken = await attempt(() => takeCode(parts, person.id, code));
      if (!isTaken) return await failed(asked, login, "The code is wrong or has already been used.");
    }
    throttle.succeeded(asked.address, login);
    return await letIn(asked, person, "signed_in");
  });

  guard.open({ method: "POST", path: "/sign-in/passkey/options" }, async ({ c }) => ({
    data: await passkeys.signInOptions(guard.origin(c)),
  }));

  const PasskeySignIn = z.strictObject({
    response: z.looseObject({ id: z.string().max(MAX_PASSKEY_ID).regex(/^[\w-]+$/) }),
  });
  guard.open({ method: "POST", path: "/sign-in/passkey", body: PasskeySignIn }, async (asked) => {
    const { response } = asked.body;
    // Throttle each passkey separately: attempts with unknown passkeys must not lock out people who have one.
    const shown = { login: `passkey ${response.id.slice(0, 100)}` };
    const signIn = () => passkeys.signIn(guard.origin(asked.c), response);
    const person = await throttle.attempt(asked.address, shown, signIn);
    if (person === null) {
      return await failed(asked, "(passkey)", "This passkey is not registered here, or its signature is not valid.");
    }
    return await letIn(asked, person, "signed_in_by_passkey");
  });

  guard.person({ method: "POST", path: "/sign-out" }, async ({ c, visitor, did }) => {
    await signIns.end(visitor.person.id, visitor.signInId);
    guard.setToken(c, null);
    await did("signed_out");
  });
}
