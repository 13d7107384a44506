/** A panel with something of everything. */
import type { Page } from "playwright-core";
import { httpClient } from "../../src/cli/client.ts";
import { accountPage, panelOf } from "./panel_pages.ts";
import type { Stage } from "./stage.ts";

export const LINE = "4915100000001";
export const CUSTOMER = "4917000000001";

/** Something of everything, so that no page is empty; every page's address. */
export async function furnish(stage: Stage): Promise<string[]> {
  const line = await stage.linkLine(LINE);
  await stage.addPhone(CUSTOMER);
  const text = "Hello from the panel's test";
  stage.secrets.add(text);
  const messageId = await stage.sendText(line, CUSTOMER, text);
  await stage.status(messageId, "sent");
  await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text });
  await stage.event(line, ({ event }) => event === "message.received");
  const failed = await stage.sendText(line, "4917000000099", text);
  await stage.status(failed, "failed");
  const sendAt = new Date(Date.now() + 60 * 60_000).toISOString();
  await stage.api.call("POST", "/messages/send/text", { sessionId: line.sessionId, to: CUSTOMER, text, sendAt });
  await stage.api.call("POST", "/templates", { name: "due", language: "en", text: "Dear {{name}}, {{total}} is due" });
  const { data: { key } } = await stage.api.call("POST", "/account/keys", { name: "agent", scopes: ["propose"] });
  stage.secrets.add(key);
  const proposer = httpClient(stage.gateway.baseUrl, { "x-api-key": key });
  await proposer.call("POST", "/messages/send/text", { to: CUSTOMER, text });
  await stage.api.call("PUT", "/optouts/4917000000003");
  const { data: unlinked } = await stage.api.call("POST", "/sessions", { name: "Not linked yet" });
  const { data: byCode } = await stage.api.call("POST", "/sessions", {
    name: "By code",
    pairingPhone: "4915100000009",
  });
  const { data: webhook } = await stage.api.call("POST", "/webhooks", { url: "http://127.0.0.1:1099/hook" });
  stage.secrets.add(webhook.secret);
  await stage.api.call("POST", `/webhooks/${webhook.id}/test`);
  const account = [
    "",
    "/lines",
    "/messages",
    "/bulks",
    "/bulks/new",
    "/chats",
    "/send",
    "/approvals",
    "/templates",
    "/webhooks",
    "/events",
    "/opt-outs",
    "/key",
    "/people",
  ];
  const gateway = ["", "/accounts", "/plans", "/lines", "/deliveries", "/people", "/audit", "/maintenance"];
  const messages = Array.from({ length: 3 }, (_, i) => ({ to: CUSTOMER, text: `${text}, bulk ${i}` }));
  const { bulkId } = await stage.api.call("POST", "/messages/send/bulk", { sessionId: line.sessionId, messages });
  return [
    ...account.map((below) => accountPage(stage, below)),
    accountPage(stage, `/lines/${line.sessionId}`),
    accountPage(stage, `/lines/${unlinked._id}`),
    accountPage(stage, `/lines/${byCode._id}`),
    accountPage(stage, `/messages/${messageId}`),
    accountPage(stage, `/bulks/${bulkId}`),
    accountPage(stage, `/chats/${line.sessionId}/${CUSTOMER}`),
    accountPage(stage, `/webhooks/${webhook.id}`),
    ...gateway.map((below) => `${panelOf(stage)}/gateway${below}`),
    `${panelOf(stage)}/me`,
    `${panelOf(stage)}/nowhere`,
  ];
}

/** The page with what it asks for, drawn. */
export async function open(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await page.locator("main h1").first().waitFor();
  // In any language.
  await page.waitForFunction(() => Reflect.get(globalThis, "document").querySelector("main .late") === null);
}
