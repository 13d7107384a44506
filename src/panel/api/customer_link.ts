/**
 * A page on which somebody else links one line, without a login. They see the line's name and QR, sign with their
 * account's passkey if that is required, and can do nothing else.
 */
import { z } from "zod";
import { invalid } from "../../errors.ts";
import type { Line } from "../../line/line.ts";
import { PhoneNumber } from "../../http/api/schemas.ts";
import { Assertion, assertionOf, requestOf } from "../../http/resources/passkey.ts";
import { deadLink, linkUrl } from "../logins/links.ts";
import { Token } from "./entry.ts";
import type { Parts } from "./parts.ts";

/** States in which a line shows neither a QR nor a code, and will not by itself. */
const AT_REST = ["disconnected", "logged_out"];

export function addCustomerLink({ guard, lines, links, panelUrl }: Parts): void {
  guard.account({ method: "POST", path: "/accounts/:accountId/lines/:sessionId/customer-link" }, async (asked) => {
    const { account, visitor, param, did } = asked;
    const sessionId = param("sessionId");
    const line = await lines.get(account.id, sessionId);
    if (line.linked) throw invalid("sessionId", "This line is linked already: log it out first.");
    if (line.wanted !== "connected") await lines.want(account.id, sessionId, "connected");
    const link = { kind: "line", accountId: account.id, sessionId } as const;
    const { token, expiresAt } = await links.make(link, visitor.person);
    await did("customer_link_made");
    return { data: { url: linkUrl(panelUrl(), link, token), token, expiresAt } };
  });

  /**
   * Returns the line. Throws Refusal link_dead if the line has been linked and unlinked since the link was made, even
   * if no page was open to see it.
   */
  async function lineOf(token: string): Promise<Line> {
    const { accountId, sessionId, createdAt } = (await links.find(token, "line")).value;
    const line = await lines.get(accountId, sessionId);
    if (line.linked || line.lastUsed <= createdAt) return line;
    await links.use(token);
    throw deadLink();
  }

  const Body = z.strictObject({ token: Token });
  guard.open({ method: "POST", path: "/link-line", body: Body }, async ({ body: { token } }) => {
    const { accountId, id, name, passkey, reason } = await lineOf(token);
    const { status, qr, pairingCode } = await lines.linking(accountId, id);
    if (status === "connected") await links.use(token);
    return { data: { name, status, reason, qr, pairingCode, passkey: passkey && requestOf(passkey) } };
  });

  // Polling restarts an expired linking, but not one that WhatsApp refused or the owner stopped. This does.
  guard.open({ method: "POST", path: "/link-line/again", body: Body }, async ({ body: { token } }) => {
    const { accountId, id, linked } = await lineOf(token);
    const { status } = await lines.linking(accountId, id);
    if (!linked && AT_REST.includes(status)) await lines.want(accountId, id, "connected");
  });

  // Somebody who has only the phone cannot scan its own screen: they link by a code. Null: by QR again.
  const CodeBody = z.strictObject({ token: Token, phone: PhoneNumber.nullable() });
  guard.open({ method: "POST", path: "/link-line/code", body: CodeBody }, async ({ body: { token, phone } }) => {
    const { accountId, id, wanted } = await lineOf(token);
    await lines.update(accountId, id, { pairingPhone: phone });
    if (wanted !== "connected") await lines.want(accountId, id, "connected");
  });

  const signBody = z.strictObject({ token: Token, assertion: Assertion });
  guard.open({ method: "POST", path: "/link-line/passkey", body: signBody }, async ({ body }) => {
    const { accountId, id } = await lineOf(body.token);
    await lines.signPasskey(accountId, id, assertionOf(body.assertion));
  });

  guard.open({ method: "POST", path: "/link-line/passkey/confirm", body: Body }, async ({ body: { token } }) => {
    const { accountId, id } = await lineOf(token);
    await lines.confirmPasskey(accountId, id);
  });
}
