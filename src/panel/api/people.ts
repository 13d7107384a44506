/** The people with a login: the operators, and the members of an account. */
import { invalid, notFound } from "../../errors.ts";
import { linkUrl } from "../logins/links.ts";
import type { Person, Purpose } from "../rows.ts";
import type { Parts } from "./parts.ts";

const OPERATORS = "/operator/people";
const MEMBERS = "/accounts/:accountId/people";

export function addPeople({ guard, people, links, panelUrl }: Parts): void {
  /** Lists the members of the account; null: the operators. */
  async function list(accountId: string | null, asking: Person) {
    const data = (await people.list(accountId)).map(({ id, login, createdAt, lastSignInAt }) => {
      return { id, login, createdAt, lastSignInAt, you: id === asking.id };
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

  guard.operator({ method: "GET", path: OPERATORS }, ({ visitor }) => list(null, visitor.person));

  guard.operator({ method: "POST", path: OPERATORS }, async ({ visitor, did }) => {
    const invitation = await invite({ kind: "operator" }, visitor.person);
    await did("operator_invited", null);
    return invitation;
  });

  guard.operator({ method: "DELETE", path: `${OPERATORS}/:id` }, async ({ visitor, param, did }) => {
    if (param("id") === visitor.person.id) throw invalid("id", "You cannot remove yourself. Ask another operator.");
    await remove(null, param("id"), visitor.person);
    await did("operator_removed", null);
    return { data: {} };
  });

  guard.account({ method: "GET", path: MEMBERS }, ({ account, visitor }) => list(account.id, visitor.person));

  guard.account({ method: "POST", path: MEMBERS }, async ({ account, visitor, did }) => {
    const invitation = await invite({ kind: "member", accountId: account.id }, visitor.person);
    await did("person_invited");
    return invitation;
  });

  guard.account({ method: "DELETE", path: `${MEMBERS}/:id` }, async ({ account, visitor, param, did }) => {
    await remove(account.id, param("id"), visitor.person);
    await did("person_removed");
    return { data: {} };
  });
}
