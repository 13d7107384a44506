/** The people with a login: the operators, and the members of an account; and open invitations. */
import { z } from "zod";
import { invalid, notFound } from "../../errors.ts";
import { linkUrl } from "../logins/links.ts";
import type { Person, Purpose } from "../rows.ts";
import type { Parts } from "./parts.ts";

/** For whom the invitation is, as shown until it is used. */
const name = z.string().trim().max(100).optional();
const Operator = z.strictObject({ name });
const Member = z.strictObject({ name, role: z.enum(["owner", "agent"]).optional() });

export function addPeople({ guard, people, links, panelUrl }: Parts): void {
  /** Lists the members of the account; null: the operators. */
  async function list(accountId: string | null, asking: Person) {
    const data = (await people.list(accountId)).map(({ id, login, name, role, createdAt, lastSignInAt }) => {
      const shown = { name: name ?? null, role: role ?? "owner" };
      return { id, login, ...shown, createdAt, lastSignInAt, you: id === asking.id };
    });
    return { data };
  }

  async function invitations(accountId: string | null) {
    const data = (await links.invitations(accountId)).map((link) => {
      const { id, name, createdAt, expiresAt } = link;
      return { id, name: name ?? null, role: "role" in link ? link.role : "owner", createdAt, expiresAt };
    });
    return { data };
  }

  async function invite(purpose: Purpose, by: Person) {
    const { token, expiresAt } = await links.make(purpose, by);
    return { data: { url: linkUrl(panelUrl(), purpose, token), token, expiresAt } };
  }

  async function remove(accountId: string | null, id: string, by: Person): Promise<void> {
    const person = await people.get(id);
    if (person?.accountId !== accountId) throw notFound("person");
    await people.remove(id, by);
  }

  guard.operator({ method: "GET", path: "/operator/people" }, ({ visitor }) => list(null, visitor.person));

  guard.operator({ method: "DELETE", path: "/operator/people/:id" }, async ({ visitor, param, did }) => {
    if (param("id") === visitor.person.id) throw invalid("id", "You cannot remove yourself. Ask another operator.");
    await remove(null, param("id"), visitor.person);
    await did("operator_removed", null);
  });

  guard.operator({ method: "GET", path: "/operator/invitations" }, () => invitations(null));

  guard.operator({ method: "POST", path: "/operator/invitations", body: Operator }, async (asked) => {
    const { body: { name }, visitor, did } = asked;
    const invitation = await invite({ kind: "operator", ...(name && { name }) }, visitor.person);
    await did("operator_invited", null);
    return invitation;
  });

  guard.operator({ method: "DELETE", path: "/operator/invitations/:id" }, async ({ param, did }) => {
    await links.withdraw(param("id"), null);
    await did("invitation_withdrawn", null);
  });

  const MEMBERS = "/accounts/:accountId/people";
  guard.account({ method: "GET", path: MEMBERS }, ({ account, visitor }) => list(account.id, visitor.person));

  guard.account({ method: "DELETE", path: `${MEMBERS}/:id` }, async ({ account, visitor, param, did }) => {
    await remove(account.id, param("id"), visitor.person);
    await did("person_removed");
  });

  const INVITATIONS = "/accounts/:accountId/invitations";
  guard.account({ method: "GET", path: INVITATIONS }, ({ account }) => invitations(account.id));

  guard.account({ method: "POST", path: INVITATIONS, body: Member }, async ({ account, body, visitor, did }) => {
    const { name, role } = body;
    const whom = { ...(name && { name }), ...(role === "agent" && { role }) };
    const invitation = await invite({ kind: "member", accountId: account.id, ...whom }, visitor.person);
    await did("person_invited");
    return invitation;
  });

  guard.account({ method: "DELETE", path: `${INVITATIONS}/:id` }, async ({ account, param, did }) => {
    await links.withdraw(param("id"), account.id);
    await did("invitation_withdrawn");
  });
}
