/**
 * A page on which somebody else links one line, without a login: they see that line's name and QR, sign with their
 * account's passkey where it is asked for, and nothing more.
 */
import { z } from "zod";
import { invalid } from "../../errors.ts";
import { Assertion, assertionOf, requestOf } from "../../http/resources/passkey.ts";
import { linkUrl } from "../logins/links.ts";
import type { Parts } from "./parts.ts";

/** What shows neither a QR nor a code, nor will. */
const AT_REST = ["disconnected", "logged_out"];

export function addCustomerLink({ guard, lines, links, panelUrl }: Parts): void {
  guard.account({ method: "POST", path: "/accounts/:accountId/lines/:sessionId/customer-link" }, async (asked) => {
    const { account, param, did } = asked;
    const sessionId = param("sessionId");
    const line = await lines.get(account.id, sessionId);
    if (line.linked) throw invalid("sessionId", "This line is linked already: log it out first.");
    if (line.wanted !== "connected") await lines.want(account.id, sessionId, "connected");
    const link = { kind: "line", accountId: account.id, sessionId } as const;
    const { token, expiresAt } = await links.make(link);
    await did("customer_link_made");
    return { data: { url: linkUrl(panelUrl(), link, token), token, expiresAt } };
  });

  const Token = z.string().min(1).max(200);
  const Body = z.strictObject({ token: Token });
  guard.open({ method: "POST", path: "/link-line", body: Body }, async ({ body: { token } }) => {
    const { accountId, sessionId } = (await links.find(token, "line")).value;
    const { name, passkey, reason } = await lines.get(accountId, sessionId);
    const { status, qr, pairingCode } = await lines.linking(accountId, sessionId);
    if (status === "connected") await links.use(token);
    return { data: { name, status, reason, qr, pairingCode, passkey: passkey && requestOf(passkey) } };
  });

  // Looking begins what ran out, but not what WhatsApp has refused or the owner has stopped.
  guard.open({ method: "POST", path: "/link-line/again", body: Body }, async ({ body: { token } }) => {
    const { accountId, sessionId } = (await links.find(token, "line")).value;
    const { linked } = await lines.get(accountId, sessionId);
    const { status } = await lines.linking(accountId, sessionId);
    if (!linked && AT_REST.includes(status)) await lines.want(accountId, sessionId, "connected");
    return { data: {} };
  });

  const signBody = z.strictObject({ token: Token, assertion: Assertion });
  guard.open({ method: "POST", path: "/link-line/passkey", body: signBody }, async ({ body }) => {
    const { accountId, sessionId } = (await links.find(body.token, "line")).value;
    await lines.signPasskey(accountId, sessionId, assertionOf(body.assertion));
    return { data: {} };
  });

  guard.open({ method: "POST", path: "/link-line/passkey/confirm", body: Body }, async ({ body: { token } }) => {
    const { accountId, sessionId } = (await links.find(token, "line")).value;
    await lines.confirmPasskey(accountId, sessionId);
    return { data: {} };
  });
}
