/**
 * A page on which somebody else links one line, without a login: they see that line's name and QR, sign with their
 * account's passkey where it is asked for, and nothing more.
 */
import { z } from "zod";
import { invalid } from "../../errors.ts";
import type { Line } from "../../line/line.ts";
import { Assertion, assertionOf, requestOf } from "../../http/resources/passkey.ts";
import { deadLink, linkUrl } from "../logins/links.ts";
import type { Parts } from "./parts.ts";

/** What shows neither a QR nor a code, nor will. */
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

  /** The line, until it is linked: it may have been since, and its phone unlinked, while no page looked. */
  async function lineOf(token: string): Promise<Line> {
    const { accountId, sessionId, createdAt } = (await links.find(token, "line")).value;
    const line = await lines.get(accountId, sessionId);
    if (line.linked || line.lastUsed <= createdAt) return line;
    await links.use(token);
    throw deadLink();
  }

  const Token = z.string().min(1).max(200);
  const Body = z.strictObject({ token: Token });
  guard.open({ method: "POST", path: "/link-line", body: Body }, async ({ body: { token } }) => {
    const { accountId, id, name, passkey, reason } = await lineOf(token);
    const { status, qr, pairingCode } = await lines.linking(accountId, id);
    if (status === "connected") await links.use(token);
    return { data: { name, status, reason, qr, pairingCode, passkey: passkey && requestOf(passkey) } };
  });

  // Looking begins what ran out, but not what WhatsApp has refused or the owner has stopped.
  guard.open({ method: "POST", path: "/link-line/again", body: Body }, async ({ body: { token } }) => {
    const { accountId, id, linked } = await lineOf(token);
    const { status } = await lines.linking(accountId, id);
    if (!linked && AT_REST.includes(status)) await lines.want(accountId, id, "connected");
    return { data: {} };
  });

  const signBody = z.strictObject({ token: Token, assertion: Assertion });
  guard.open({ method: "POST", path: "/link-line/passkey", body: signBody }, async ({ body }) => {
    const { accountId, id } = await lineOf(body.token);
    await lines.signPasskey(accountId, id, assertionOf(body.assertion));
    return { data: {} };
  });

  guard.open({ method: "POST", path: "/link-line/passkey/confirm", body: Body }, async ({ body: { token } }) => {
    const { accountId, id } = await lineOf(token);
    await lines.confirmPasskey(accountId, id);
    return { data: {} };
  });
}
