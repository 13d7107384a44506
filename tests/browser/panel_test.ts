/** The panel in a real browser, on a real gateway, as its people go through it. */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { totpCode } from "../../src/panel/logins/totp.ts";
import { systemClock } from "../../src/runtime.ts";
import { runCommand } from "../support/gateway_process.ts";
import { faultsOf } from "../support/axe.ts";
import { type BrowserOptions, inBrowser, type Visit } from "../support/browser.ts";
import {
  accountPage,
  asOperator,
  customerLink,
  join,
  operatorLink,
  panelOf,
  PASSWORD,
  scanFrom,
  signIn,
} from "../support/panel_pages.ts";
import { Receiver } from "../support/receiver.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";

const LINE = "4915100000001";
const CUSTOMER = "4917000000001";

const inPanel = (
  name: string,
  run: (visit: Visit, stage: Stage) => Promise<void>,
  options?: BrowserOptions,
) => inBrowser(name, (visit) => withStage(openStage, (stage) => run(visit, stage)), options);

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const badge = (page: Page, text: string) => page.locator("main .badge", { hasText: text }).first();

inPanel(
  "the first operator comes in by the printed link, and a member by theirs, who sees their account alone",
  async ({ page, another, assertQuiet }, stage) => {
    await page.goto(panelOf(stage));
    await page.getByText("paloma operator link").waitFor();
    const link = await operatorLink(stage);
    await join(page, link, "root@example.com");
    await page.getByRole("heading", { name: "Gateway" }).waitFor();
    await page.locator("main").getByRole("link", { name: "stage", exact: true }).click();
    await page.getByRole("link", { name: "People" }).click();
    await button(page, "Invite someone").click();
    await page.getByLabel("Role").selectOption("owner");
    await button(page, "Create the link").click();
    const invitation = await page.locator("dialog code").textContent();
    stage.secrets.add(invitation!.split("#")[1]!);

    const bob = await another();
    await join(bob, invitation!, "bob");
    await bob.getByRole("heading", { name: "stage" }).waitFor();
    assert.equal(await bob.getByText("Operator", { exact: true }).count(), 0);
    await bob.goto(`${panelOf(stage)}/gateway/plans`);
    await bob.getByRole("heading", { name: "Page not found" }).waitFor();
    assert.equal(await button(bob, "New plan").count(), 0, "what only an operator may do");
    await bob.goBack();
    // Somebody else signs in in the same browser: the other tab is theirs then, too.
    const tab = await bob.context().newPage();
    await tab.goto(accountPage(stage, "/lines"));
    await tab.getByRole("link", { name: "bob" }).waitFor();
    await button(bob, "Sign out").click();
    await signIn(bob, "root@example.com");
    await bob.getByRole("heading", { name: "Gateway" }).waitFor();
    await tab.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await tab.getByRole("heading", { name: "Gateway" }).waitFor();
    await tab.close();
    await button(bob, "Sign out").click();
    await signIn(bob, "bob");
    await bob.getByRole("heading", { name: "stage" }).waitFor();
    const { accountId } = JSON.parse(await runCommand(["account", "create", "--name", "other", "--json"], stage.env));
    assertQuiet();
    await bob.goto(`${panelOf(stage)}/accounts/${accountId}`);
    await bob.getByText("There is no such account").first().waitFor();
    assert.ok(!(await bob.locator("body").innerText()).includes("other"));
    await bob.goto(link);
    await bob.getByRole("heading", { name: "This link is no longer valid" }).waitFor();
  },
);

inPanel(
  "an agent is invited by name, lands in the chats, sees the pages of who answers, and answers",
  async ({ page, another, assertQuiet }, stage) => {
    const { sessionId } = await stage.linkLine(LINE);
    await stage.addPhone(CUSTOMER, "Carla");
    for (const text of ["where is my parcel?", "on its way"]) stage.secrets.add(text);
    await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text: "where is my parcel?" });
    await asOperator(page, stage);
    await page.goto(accountPage(stage, "/people"));
    await button(page, "Invite someone").click();
    await page.getByLabel("For", { exact: true }).fill("Maria, till 2");
    await button(page, "Create the link").click();
    const invitation = (await page.locator("dialog code").textContent())!;
    stage.secrets.add(invitation.split("#")[1]!);
    await page.keyboard.press("Escape");
    await page.getByRole("row", { name: "Maria, till 2" }).getByText("Answers chats").waitFor();

    const maria = await another();
    await join(maria, invitation, "maria");
    await maria.getByRole("heading", { name: "Chats" }).waitFor();
    const menu = maria.getByRole("navigation", { name: "Pages" }).locator(".places").getByRole("link");
    await menu.getByText("1", { exact: true }).waitFor();
    assert.deepEqual(await menu.allTextContents(), ["Messages", "Chats1", "Send a message", "Templates", "Approvals"]);
    await maria.getByRole("link", { name: "Carla" }).click();
    await maria.getByLabel("Reply").fill("on its way");
    await button(maria, "Send").click();
    await maria.locator(".turn.mine", { hasText: "on its way" }).getByText("delivered").waitFor();
    for (const below of ["", "/lines", `/lines/${sessionId}`, "/webhooks", "/events", "/key", "/people", "/opt-outs"]) {
      await maria.goto(accountPage(stage, below));
      await maria.getByRole("heading", { name: "Page not found" }).waitFor();
    }
    assertQuiet();
    await page.reload();
    await page.getByRole("row", { name: "maria" }).getByText("Answers chats").waitFor();
  },
);

inPanel(
  "account and gateway begin with what a person has to do, each with its action, and say nothing when all is well",
  async ({ page, assertQuiet }, stage) => {
    const { sessionId } = await stage.linkLine(LINE);
    await asOperator(page, stage);
    await page.goto(accountPage(stage));
    await page.getByRole("heading", { name: "stage" }).waitFor();
    await page.getByText("Last 30 days").waitFor();
    assert.equal(await page.getByText("Needs attention").count(), 0);
    const menu = page.getByRole("navigation", { name: "Pages" });
    assert.equal(await menu.locator(".count").count(), 0);

    const text = "to nobody";
    stage.secrets.add(text);
    const { messageId } = await stage.api.call("POST", "/messages/send/text", { sessionId, to: "4917999999999", text });
    await stage.status(messageId, "failed");
    await stage.control.call("POST", "/faults", { line: LINE, kind: "client_expiration", at: Date.now() + 86_400_000 });
    await page.goto(`${panelOf(stage)}/gateway`);
    await stage.control.call("POST", "/faults", { line: LINE, kind: "logout" });
    await page.goto(accountPage(stage));
    const card = page.locator(".attention");
    await card.getByText("1 message failed today: 1 not on WhatsApp.").waitFor();
    await card.getByText("lost its link and neither sends nor receives").waitFor();
    await menu.getByRole("link", { name: "Lines" }).first().getByText("1", { exact: true }).waitFor();
    await page.goto(`${panelOf(stage)}/gateway`);
    await card.getByRole("link", { name: "stage", exact: true }).waitFor();
    await card.getByRole("link", { name: "Link again" }).click();
    await page.getByRole("heading", { name: `line ${LINE}` }).waitFor();
    assertQuiet();
  },
);

inPanel(
  "lists tell: the name before the number, why something failed, who was erased; rows and events lead on",
  async ({ page, assertQuiet }, stage) => {
    const { sessionId } = await stage.linkLine(LINE);
    await stage.addPhone(CUSTOMER, "Carla");
    for (const text of ["a question", "an answer", "to nobody"]) stage.secrets.add(text);
    await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text: "a question" });
    const { data: hook } = await stage.api.call("POST", "/webhooks", { url: "http://127.0.0.1:1099/hook" });
    stage.secrets.add(hook.secret);
    const send = (to: string, text: string) =>
      stage.api.call("POST", "/messages/send/text", { sessionId, to, text }).then(({ messageId }) => messageId);
    await stage.status(await send("4917999999999", "to nobody"), "failed");
    await asOperator(page, stage);
    await page.goto(accountPage(stage, "/messages"));
    await page.getByRole("row", { name: "to nobody" }).getByText("not on WhatsApp", { exact: true }).waitFor();
    const answer = await send(CUSTOMER, "an answer");
    await stage.status(answer, "sent");
    const row = page.getByRole("row", { name: "an answer" });
    await row.getByRole("link", { name: "Carla" }).waitFor();
    await row.getByText(`+${CUSTOMER}`).waitFor();
    for (const words of ["carl", `+49 1700 ${CUSTOMER.slice(6)}`]) {
      await page.getByLabel("Search").fill(words);
      await page.getByRole("row", { name: "to nobody" }).waitFor({ state: "detached" });
      await row.waitFor();
      await page.getByLabel("Search").fill("");
      await page.getByRole("row", { name: "to nobody" }).waitFor();
    }
    // The row is the link, wherever one clicks.
    await row.getByText("an answer").click({ force: true });
    await page.getByRole("heading", { name: "Carla" }).waitFor();

    await page.goto(accountPage(stage, "/webhooks"));
    await badge(page, "retrying").waitFor();
    await page.goto(accountPage(stage, "/events"));
    const sent = page.getByRole("listitem").filter({ hasText: "message.sent" }).first();
    await sent.locator("summary").click();
    await sent.getByRole("link", { name: hook.url }).waitFor();
    await sent.getByText("waiting").waitFor();
    await sent.getByRole("link", { name: "Show the message" }).click();
    await page.getByRole("heading", { name: "Carla" }).waitFor();

    // To a chat, a message and a page by the keyboard alone.
    const reach = async (words: string, name: string) => {
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Go to" }).and(page.locator(":focus")).waitFor();
      await page.keyboard.type(words);
      await page.getByRole("option", { name, selected: true }).waitFor();
      await page.keyboard.press("Enter");
    };
    await reach("carl", "Carla");
    await page.locator(".turn").getByText("a question").waitFor();
    await reach("audit", "Audit log");
    await page.getByRole("heading", { name: "Audit log" }).waitFor();
    await page.goto(accountPage(stage));
    await page.getByText("Last 30 days").waitFor();
    await reach(answer, answer);
    await page.getByRole("heading", { name: "Carla" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Go to" }).waitFor();
    assert.deepEqual(await faultsOf(page, "the palette"), []);
    await page.keyboard.press("Escape");

    await stage.api.call("DELETE", `/data/${CUSTOMER}`);
    await page.goto(accountPage(stage, "/messages"));
    await page.getByRole("link", { name: "erased" }).waitFor();
    assertQuiet();
  },
);

inPanel(
  "who was sent the link to the phone that is to be linked links by a code, or by the QR after all",
  async ({ page, another }, stage) => {
    await asOperator(page, stage);
    await stage.addPhone(LINE);
    const { data: { _id } } = await stage.api.call("POST", "/sessions", { name: "Front desk" });
    const link = await customerLink(page, stage, _id);
    const guest = await another({ viewport: { width: 390, height: 844 } });
    await guest.goto(link);
    await guest.getByAltText("QR code to scan").waitFor();
    await button(guest, "I only have this phone").click();
    await guest.getByLabel("Your WhatsApp number").fill("0151 000");
    await button(guest, "Get a code").click();
    await guest.locator(".wrong").waitFor();
    await guest.getByLabel("Your WhatsApp number").fill(`+${LINE}`);
    await button(guest, "Get a code").click();
    const code = guest.locator("[data-code]");
    await code.waitFor();
    await button(guest, "Scan a QR code instead").click();
    await guest.getByAltText("QR code to scan").waitFor();
    await button(guest, "I only have this phone").click();
    await guest.getByLabel("Your WhatsApp number").fill(LINE);
    await button(guest, "Get a code").click();
    await code.waitFor();
    await stage.control.call("POST", `/phones/${LINE}/enter-code`, { code: await code.textContent() });
    await guest.getByRole("heading", { name: "Linked" }).waitFor();
  },
);

inPanel(
  "whose sign-in has ended comes back to the page, signing out ends what it shows, and six wrong passwords mean waiting",
  async ({ page, another }, stage) => {
    await asOperator(page, stage);
    await page.goto(accountPage(stage));
    await page.getByRole("heading", { name: "stage" }).waitFor();
    // Whatever the page asks for by itself is answered when the link was followed: it does not find out before.
    const followed = Promise.withResolvers<void>();
    await page.route("**/panel/api/**", (route) => followed.promise.then(() => route.continue()));
    await page.context().clearCookies();
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByRole("link", { name: "Messages", exact: true }).click();
    followed.resolve();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.getByText("Your session has ended").waitFor();
    const { pathname } = new URL(accountPage(stage, "/messages"));
    assert.equal(`/panel${new URL(page.url()).searchParams.get("next")}`, pathname);
    await signIn(page, "root@example.com");
    await page.getByRole("heading", { name: "Messages" }).waitFor();
    await button(page, "Sign out").first().click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    const stranger = await another();
    await stranger.goto(accountPage(stage, "/key"));
    for (let i = 0; i < 5; i++) {
      await signIn(stranger, "root@example.com", `wrong password ${i}`);
      await stranger.getByRole("alert").getByText("is incorrect").waitFor();
      await stranger.getByLabel("Password", { exact: true }).fill("");
    }
    await signIn(stranger, "root@example.com");
    await stranger.getByRole("alert").getByText("Too many failed attempts").waitFor();
  },
);

inPanel(
  "whoever signs out is asked nothing more by their page, and what it was asking for ends",
  async ({ page, assertQuiet }, stage) => {
    await asOperator(page, stage);
    await page.goto(accountPage(stage));
    await page.getByRole("heading", { name: "stage" }).waitFor();
    // The page waits for its messages; the gateway has signed its person out before the page is told.
    const asked = Promise.withResolvers<void>();
    const signedOut = Promise.withResolvers<void>();
    const told = Promise.withResolvers<void>();
    await page.route("**/messages/history?*", async (route) => {
      asked.resolve();
      await signedOut.promise;
      await route.continue();
    });
    await page.route("**/sign-out", async (route) => {
      const response = await route.fetch();
      signedOut.resolve();
      await told.promise;
      await route.fulfill({ response });
    });
    await page.getByRole("link", { name: "Messages", exact: true }).click();
    await asked.promise;
    const ended = page.waitForEvent("requestfailed", (request) => request.url().includes("/messages/history"));
    const requests: string[] = [];
    page.on("request", (request) => requests.push(`${request.method()} ${new URL(request.url()).pathname}`));
    await button(page, "Sign out").click();
    await Promise.all([signedOut.promise, ended]);
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await page.getByRole("link", { name: "Opt-outs" }).click();
    await page.getByRole("heading", { name: "Opt-outs" }).waitFor();
    told.resolve();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    assert.equal(await page.getByText("Your session has ended").count(), 0);
    assert.deepEqual(requests.filter((request) => request.includes("/api/")), ["POST /panel/api/sign-out"]);
    await signIn(page, "root@example.com");
    await page.getByRole("heading", { name: "Gateway" }).waitFor();
    assertQuiet();
  },
);

inPanel("a sign-out that fails leaves the page as it was, with what it was asking for", async ({ page }, stage) => {
  await asOperator(page, stage);
  await page.goto(accountPage(stage));
  await page.getByRole("heading", { name: "stage" }).waitFor();
  const asked = Promise.withResolvers<void>();
  await page.route("**/optouts?*", () => asked.resolve());
  await page.route("**/sign-out", async (route) => {
    await page.unroute("**/optouts?*");
    await route.fulfill({ status: 500, json: { title: "A full disk" } });
  });
  await page.getByRole("link", { name: "Opt-outs" }).click();
  await asked.promise;
  await button(page, "Sign out").click();
  await page.locator(".toast", { hasText: "A full disk" }).waitFor();
  await page.getByText("No opt-outs").waitFor();
});

inPanel("a page that was left loads nothing more, although it meant to look again soon", async ({ page }, stage) => {
  const { data: webhook } = await stage.api.call("POST", "/webhooks", { url: "http://127.0.0.1:1099/hook" });
  stage.secrets.add(webhook.secret);
  await asOperator(page, stage);
  await page.clock.install();
  await page.goto(accountPage(stage, `/webhooks/${webhook.id}`));
  await button(page, "Send test event").click();
  await page.getByText("A test event is on its way.").waitFor();
  await button(page, "Sign out").click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  const requests: string[] = [];
  page.on("request", (request) => requests.push(new URL(request.url()).pathname));
  await page.clock.fastForward(10_000);
  await page.evaluate("fetch('/healthz')");
  assert.deepEqual(requests, ["/healthz"]);
});

inPanel(
  "a line is linked by the QR on the page, changes before one's eyes, and is deleted with a word of what is lost",
  async ({ page, assertQuiet }, stage) => {
    await stage.addPhone(LINE);
    await asOperator(page, stage);
    await page.goto(accountPage(stage, "/lines"));
    await button(page, "Link a line").first().click();
    await page.getByLabel("Name").fill("Front desk");
    // However often it is pressed, it is one line.
    await button(page, "Link").dblclick();
    const connected = badge(page, "connected");
    await scanFrom(page, stage, { number: LINE, done: connected });
    await page.getByText(`+${LINE}`).first().waitFor();
    const { data: lines } = await stage.api.call("GET", "/sessions");
    assert.equal(lines.length, 1);
    assert.equal(await page.title(), "Front desk · Paloma");

    // The phone unlinks it; its number stays on the page, and a QR comes all the same.
    await stage.control.call("POST", "/faults", { line: LINE, kind: "logout" });
    await button(page, "Link again").click();
    await scanFrom(page, stage, { number: LINE, done: connected });

    await button(page, "Disconnect").click();
    await badge(page, "disconnected").waitFor();
    await stage.addPhone(CUSTOMER);
    await stage.api.call("POST", "/messages/send/text", {
      sessionId: lines[0]._id,
      to: CUSTOMER,
      text: "this one waits",
    });
    const messages = Array.from({ length: 250 }, () => ({ to: CUSTOMER, text: "and these wait too" }));
    await stage.api.call("POST", "/messages/send/bulk", { sessionId: lines[0]._id, messages });
    await page.locator("main").getByText(`1. +${CUSTOMER}`, { exact: true }).waitFor();
    await page.getByRole("heading", { name: "Queue (251)" }).waitFor();
    await button(page, "Delete").click();
    await page.getByText("251 messages are waiting on this line and will fail.").waitFor();
    await page.locator("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("“Front desk” was deleted.").waitFor();
    await page.getByText("No lines yet").waitFor();
    assert.deepEqual((await stage.control.call("GET", `/phones/${LINE}`)).devices, []);

    const { data: other } = await stage.api.call("POST", "/sessions", { name: "Back office" });
    await page.goto(accountPage(stage, `/lines/${other._id}`));
    await page.getByRole("heading", { name: "Back office" }).waitFor();
    // The page finds out by asking for what is gone, which the browser calls an error.
    assertQuiet();
    await stage.api.call("DELETE", `/sessions/${other._id}`);
    await page.getByText("“Back office” was deleted.").waitFor();
    await page.getByText("No lines yet").waitFor();
  },
);

inPanel("a line is linked by the code on the page", async ({ page, assertQuiet }, stage) => {
  await stage.addPhone(LINE);
  await asOperator(page, stage);
  await page.goto(accountPage(stage, "/lines"));
  await button(page, "Link a line").first().click();
  await page.getByLabel("Name").fill("By code");
  await page.getByLabel("Pairing code").check();
  // As an address book gives it: with a space, a hyphen and marks that nobody sees.
  await page.getByLabel("Phone number").fill(
    `\u202a00${LINE.slice(0, 2)} ${LINE.slice(2, 6)}\u2011${LINE.slice(6)}\u202c`,
  );
  await button(page, "Link").click();
  const code = page.locator("[data-code]");
  await code.waitFor();
  assert.match((await code.textContent())!, /^[A-Z0-9]{4}-[A-Z0-9]{4}$/);
  await stage.control.call("POST", `/phones/${LINE}/enter-code`, {
    code: (await code.textContent())!.replace("-", ""),
  });
  await badge(page, "connected").waitFor();
  assertQuiet();
});

inPanel(
  "a customer links the line by a link of their own, which shows nothing else and is dead after",
  async ({ page, another, assertQuiet }, stage) => {
    await stage.addPhone(LINE);
    await asOperator(page, stage);
    const { data: { _id } } = await stage.api.call("POST", "/sessions", { name: "Theirs" });
    const link = await customerLink(page, stage, _id);
    await page.keyboard.press("Escape");

    const customer = await another({ viewport: { width: 390, height: 844 } });
    await customer.goto(link);
    await customer.getByText("Link “Theirs”").waitFor();
    assert.equal(await customer.getByRole("navigation").count(), 0);
    await scanFrom(customer, stage, { number: LINE, done: customer.getByText("You can close this page") });
    await badge(page, "connected").waitFor();
    assertQuiet();
    // Only what is behind the `#` differs, for which no browser loads a page.
    await customer.evaluate("location.hash = 'none'");
    await customer.getByText("This link is no longer valid").waitFor();
    await customer.goto(link);
    await customer.getByText("This link is no longer valid").waitFor();
  },
);

inPanel(
  "a message is sent from the page and seen through, by keyboard alone, and answered in the chat",
  async ({ page, assertQuiet }, stage) => {
    await stage.linkLine(LINE);
    await stage.addPhone(CUSTOMER);
    await asOperator(page, stage);
    await page.goto("about:blank");
    await page.context().clearCookies();
    await page.goto(panelOf(stage));
    const type = async (...keys: string[]) => {
      for (
        const key of keys
      ) await (/^[A-Z][a-z]+(\+|$)/.test(key) ? page.keyboard.press(key) : page.keyboard.type(key));
    };
    // A page that comes takes the focus to its heading.
    const comes = (name: string) => page.locator("main h1:focus", { hasText: name }).waitFor();
    await comes("Sign in");
    await focusBy(page, "login");
    await type("root@example.com", "Tab", PASSWORD, "Enter");
    await comes("Gateway");
    await focusBy(page, "stage");
    await type("Enter");
    await comes("stage");
    await focusBy(page, "Send a message");
    await type("Enter");
    await comes("Send a message");
    await page.getByRole("heading", { name: "Message", exact: true }).waitFor();
    await focusBy(page, "to");
    await type(`+${CUSTOMER}`);
    await focusBy(page, "text");
    const text = "Typed without a mouse";
    stage.secrets.add(text);
    await type(text, "Tab", "Enter");
    await badge(page, "delivered").waitFor();
    const arrived = await stage.arrival(CUSTOMER, (message) => message.text === text);
    await stage.control.call("POST", `/phones/${CUSTOMER}/read`, { id: arrived.id });
    await badge(page, "read").waitFor();

    await page.locator("main").getByRole("link", { name: `+${CUSTOMER}` }).click();
    await page.getByRole("heading", { name: "Timeline" }).waitFor();
    await page.getByRole("link", { name: "Chats" }).click();
    await page.getByText(text).first().click();
    await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text: "Thank you" });
    await page.locator(".turn").getByText("Thank you").waitFor();
    const answer = page.getByLabel("Reply");
    await answer.fill("You are welcome");
    await answer.press("Enter");
    await page.locator(".turn.mine").getByText("You are welcome").waitFor();
    await stage.arrival(CUSTOMER, (message) => message.text === "You are welcome");
    for (const said of ["Thank you", "You are welcome"]) stage.secrets.add(said);
    assertQuiet();
  },
);

inPanel(
  "a message that is sent again leaves once, though the first answer was lost",
  async ({ page }, stage) => {
    const { sessionId } = await stage.linkLine(LINE);
    await stage.addPhone(CUSTOMER);
    await asOperator(page, stage);
    const { messageId } = await stage.api.call("POST", "/messages/send/text", {
      sessionId,
      to: CUSTOMER,
      text: "Once",
    });
    await page.goto(accountPage(stage, `/messages/${messageId}`));
    await button(page, "Send again").waitFor();
    await page.route("**/messages/send/text", async (route) => {
      await route.fetch();
      await route.abort();
    }, { times: 1 });
    await button(page, "Send again").click();
    await page.locator(".toast", { hasText: "is not responding" }).waitFor();
    await button(page, "Send again").click();
    await page.getByText("Message queued again.").waitFor();
    assert.equal((await stage.api.call("GET", "/messages/history")).pagination.total, 2);
  },
);

inPanel(
  "a text that is changed after its answer was lost is a message of its own",
  async ({ page }, stage) => {
    await stage.linkLine(LINE);
    await stage.addPhone(CUSTOMER);
    await asOperator(page, stage);
    await page.goto(accountPage(stage, "/send"));
    await page.getByLabel("To", { exact: true }).fill(CUSTOMER);
    await page.getByRole("textbox", { name: "Text" }).fill("At five");
    await page.route("**/messages/send/text", async (route) => {
      await route.fetch();
      await route.abort();
    }, { times: 1 });
    // Not what the form says of it: that goes with the next answer, which may come at once.
    const lost = page.waitForEvent("requestfailed", (request) => request.url().endsWith("send/text"));
    await button(page, "Send").click();
    await lost;
    await page.getByRole("textbox", { name: "Text" }).fill("At six");
    const answered = page.waitForResponse(/send\/text$/);
    await button(page, "Send").click();
    assert.equal((await answered).status(), 202);
    const { data } = await stage.api.call("GET", "/messages/history");
    assert.deepEqual(data.map(({ text }: { text: string }) => text).sort(), ["At five", "At six"]);
  },
);

inPanel(
  "an operator who renames an account leaves the hour of its end, and no new plan takes the place of another",
  async ({ page }, stage) => {
    await asOperator(page, stage);
    const at = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10) + "T18:30:00.000Z";
    await page.goto(`${panelOf(stage)}/gateway/accounts`);
    const ask = (method: string, below: string, body?: object) =>
      page.evaluate(async ([method, below, body]) => {
        const headers = { "x-paloma-panel": "1", "content-type": "application/json" };
        return await (await fetch(`../api${below}`, { method, headers, body })).json();
      }, [method, below, body && JSON.stringify(body)] as [string, string, string | undefined]);
    await ask("PATCH", `/operator/accounts/${stage.accountId}`, { expiresAt: Date.parse(at) });
    await page.reload();
    await button(page, "Edit").click();
    await page.getByLabel("Name").fill("Renamed");
    await page.locator("dialog option").first().waitFor({ state: "attached" });
    await button(page, "Save").click();
    await page.getByRole("link", { name: "Renamed" }).waitFor();
    assert.equal((await stage.api.call("GET", "/account")).data.expiresAt, at);

    await button(page, "Edit").click();
    await page.getByLabel("Subscription ends").evaluate((field) => Object.assign(field, { value: "20260-01-01" }));
    await button(page, "Save").click();
    assert.equal(await page.locator("dialog input:invalid").count(), 1, "a slip of the finger is not never");
    assert.equal((await stage.api.call("GET", "/account")).data.expiresAt, at);

    const plans = await ask("GET", "/operator/plans");
    await page.goto(`${panelOf(stage)}/gateway/plans`);
    await button(page, "New plan").click();
    await page.getByLabel("Name").fill(plans.data[0].name);
    await button(page, "Save").click();
    await page.locator("dialog").getByText("There is already a plan with this name").waitFor();
    assert.deepEqual(await ask("GET", "/operator/plans"), plans);
    await page.getByLabel("Name").fill("small");
    await page.getByLabel("Lines", { exact: true }).fill("");
    await button(page, "Save").click();
    assert.equal(await page.locator("dialog :invalid").count() > 0, true, "no lines are not none");
    await page.getByLabel("Lines", { exact: true }).fill("2");
    await button(page, "Save").click();
    await page.getByRole("cell", { name: "small" }).waitFor();

    const offered = async () => {
      await page.goto(`${panelOf(stage)}/gateway/accounts`);
      await button(page, "New account").click();
      const field = page.locator("dialog").getByLabel("Plan");
      await field.locator("option").first().waitFor({ state: "attached" });
      return { chosen: await field.inputValue(), names: await field.locator("option").allTextContents() };
    };
    // The stage's account is on it, as a sandbox's is.
    const { chosen, names } = await offered();
    assert.deepEqual([chosen, names.includes("sandbox")], ["free", true]);
    await ask("PATCH", `/operator/accounts/${stage.accountId}`, { plan: "own" });
    assert.equal((await offered()).names.includes("sandbox"), false);
  },
);

inPanel(
  "whoever removes the last number of the last page does not read that nobody has opted out",
  async ({ page }, stage) => {
    const numbers = Array.from({ length: 51 }, (_, i) => String(4917100001000 + i));
    for (const number of numbers) await stage.api.call("PUT", `/optouts/${number}`);
    await asOperator(page, stage);
    await page.goto(accountPage(stage, "/opt-outs?page=2"));
    await button(page, "Remove").click();
    await page.locator("dialog").getByRole("button", { name: "Remove" }).click();
    await page.locator("tbody tr").waitFor({ state: "detached" });
    assert.equal(await page.getByText("No opt-outs").count(), 0);
    await page.getByRole("link", { name: "Newer" }).click();
    await page.locator("tbody tr").nth(49).waitFor();
  },
);

inPanel(
  "who answers chats finds one, and loses neither her place in list and chat nor what she has typed",
  async ({ page }, stage) => {
    const { sessionId } = await stage.linkLine(LINE);
    const write = async (number: string, text: string) => {
      stage.secrets.add(text);
      await stage.control.call("POST", `/phones/${number}/messages`, { to: LINE, text });
    };
    const names = Array.from({ length: 24 }, (_, i) => `Customer ${String.fromCharCode(65 + i)}`);
    for (const [i, name] of names.entries()) {
      await stage.addPhone(`49171000${1000 + i}`, name);
      await write(`49171000${1000 + i}`, `a question of ${name}`);
    }
    await asOperator(page, stage);
    await page.setViewportSize({ width: 1024, height: 700 });
    await page.goto(accountPage(stage, `/chats/${sessionId}`));
    const list = page.getByRole("navigation", { name: "Chats" });
    const chat = (name: string) => list.getByRole("link", { name });
    const all = list.getByRole("link").nth(names.length - 1);
    await all.waitFor();
    await page.getByLabel("Search chats").fill("customer c");
    await chat("Customer A").waitFor({ state: "detached" });
    assert.equal(await list.getByRole("link").count(), 1);
    await page.getByLabel("Search chats").fill("");

    await all.waitFor();
    await chat("Customer A").scrollIntoViewIfNeeded();
    const place = await list.evaluate((element) => element.scrollTop);
    assert.ok(place > 0);
    await chat("Customer A").click();
    const answer = page.getByLabel("Reply");
    const half = "half an answer";
    await page.locator("textarea:focus").waitFor();
    await page.keyboard.type(half);
    assert.equal(await list.evaluate((element) => element.scrollTop), place);
    await chat("Customer B").click();
    await page.locator(".turn").getByText("a question of Customer B").waitFor();
    assert.equal(await answer.inputValue(), "");
    await page.goBack();
    await page.locator(".turn").getByText("a question of Customer A").waitFor();
    assert.equal(await answer.inputValue(), half);
    await page.reload();
    await page.locator(".turn").getByText("a question of Customer A").waitFor();
    assert.equal(await answer.inputValue(), half);
    await page.context().clearCookies();
    // The page may have found out by itself.
    await page.evaluate("document.querySelector('.answer')?.requestSubmit()");
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await signIn(page, "root@example.com");
    await page.locator(".turn").getByText("a question of Customer A").waitFor();
    assert.equal(await answer.inputValue(), half);
    await answer.press("Enter");
    await page.locator(".turn.mine").getByText(half).waitFor();
    await page.waitForFunction("document.querySelector('.answer textarea').value === ''");
    stage.secrets.add(half);

    const turns = page.getByRole("region", { name: "Messages" });
    const fromEnd = () => turns.evaluate((it) => it.scrollHeight - it.scrollTop - it.clientHeight);
    for (let i = 0; i < 12; i++) await write("491710001000", `and ${i}\n\n\nmore`);
    await turns.getByText("and 11").waitFor();
    await page.waitForFunction(
      "(({ scrollHeight: h, scrollTop: y, clientHeight: c }) => h - y - c < 2)(document.querySelector('.turns'))",
    );
    // Whoever reads further up stays there.
    await turns.evaluate((it) => it.scrollTo(0, 10));
    await write("491710001000", "and one more");
    await turns.getByText("and one more").waitFor();
    assert.equal(await turns.evaluate((it) => it.scrollTop), 10);
    assert.ok(await fromEnd() > 100);
    await stage.api.call("POST", `/sessions/${sessionId}/disconnect`);
    await page.getByText("Your reply will wait until it is").waitFor();
  },
);

inPanel(
  "what goes to a group stands under its name, among messages, in its own page, and in the chats",
  async ({ page }, stage) => {
    const line = await stage.linkLine(LINE);
    await stage.addPhone(CUSTOMER);
    const participants = [CUSTOMER, LINE];
    const { id } = await stage.control.call("POST", "/groups", { subject: "Neighbours", participants });
    const text = "the stairs are cleaned on Monday";
    stage.secrets.add(text);
    await stage.status(await stage.sendText(line, id, text), "sent");
    await asOperator(page, stage);
    await page.goto(accountPage(stage, "/messages"));
    await page.getByRole("link", { name: "Neighbours" }).click();
    await page.getByRole("heading", { name: "Neighbours" }).waitFor();
    await page.goto(accountPage(stage, `/chats/${line.sessionId}`));
    const chats = page.getByRole("navigation", { name: "Chats" });
    await chats.getByRole("link", { name: "Neighbours" }).waitFor();

    // A line that is away cannot ask what its groups are called, but has kept it.
    await stage.api.call("POST", `/sessions/${line.sessionId}/disconnect`);
    await page.reload();
    await chats.getByRole("link", { name: "Neighbours" }).waitFor();
  },
);

inPanel(
  "on a phone the menu comes where one reads, and goes by Escape and by the link of the page itself",
  async ({ page }, stage) => {
    await asOperator(page, stage);
    await page.setViewportSize({ width: 390, height: 700 });
    await page.goto(`${panelOf(stage)}/me`);
    await page.getByRole("heading", { name: "Active sessions" }).waitFor();
    await page.evaluate("document.querySelector('main').style.minHeight = '3000px'");
    await page.evaluate("scrollTo(0, 1500)");
    const menu = button(page, "Menu");
    const side = page.getByRole("navigation", { name: "Pages" });
    await menu.click();
    assert.deepEqual(await side.evaluate((it) => Math.round(it.getBoundingClientRect().top)), 53);
    await page.keyboard.press("Escape");
    await side.waitFor({ state: "hidden" });
    await page.locator("header button:focus").waitFor();
    await menu.click();
    await side.getByRole("link", { name: "root@example.com" }).click();
    await side.waitFor({ state: "hidden" });
  },
);

inPanel(
  "a chat reads in the direction of its words, says when what is scheduled leaves, and another is chosen when its line is gone",
  async ({ page }, stage) => {
    const line = await stage.linkLine(LINE);
    await stage.addPhone(CUSTOMER);
    const text = "שלום abc";
    stage.secrets.add(text);
    await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text });
    await asOperator(page, stage);
    await page.goto(accountPage(stage, `/chats/${line.sessionId}/${CUSTOMER}`));
    await page.locator(".turn > div", { hasText: "abc" }).waitFor();
    const [hebrew, latin] = await page.evaluate<[number, number]>(`
      [[0, 4], [5, 8]].map(([from, to]) => {
        const range = new Range();
        const words = document.querySelector(".turn > div").firstChild;
        range.setStart(words, from);
        range.setEnd(words, to);
        return range.getBoundingClientRect().left;
      })`);
    assert.ok(latin < hebrew, "what follows stands to the left");
    await page.getByLabel("Reply").fill("a".repeat(65_537));
    await button(page, "Send").click();
    await page.getByRole("alert").getByText("has more than 65,536 characters", { exact: true }).waitFor();

    const sendAt = new Date(Date.now() + 3 * 86_400_000).toISOString();
    const { messageId } = await stage.api.call("POST", "/messages/send/text", { to: CUSTOMER, text: "later", sendAt });
    stage.secrets.add("later");
    await page.goto(accountPage(stage, `/messages/${messageId}`));
    await page.getByText("its scheduled time", { exact: true }).waitFor();
    await page.locator(`dd time[datetime="${sendAt}"]`).waitFor();
    await page.goto(accountPage(stage, "/messages"));
    await page.getByRole("row", { name: "later" }).getByText("scheduled", { exact: true }).waitFor();

    const { data: gone } = await stage.api.call("POST", "/sessions", { name: "Gone" });
    await stage.api.call("DELETE", `/sessions/${gone._id}`);
    await page.goto(accountPage(stage, `/chats/${gone._id}`));
    await page.getByText("Could not load").waitFor();
    await page.getByLabel("Line").selectOption({ label: `line ${LINE}` });
    await page.getByRole("navigation", { name: "Chats" }).getByRole("link").waitFor();
  },
);

inPanel(
  "a long queue leads to all of its messages, and a search goes on behind the newest thousands",
  async ({ page, assertQuiet }, stage) => {
    const { sessionId } = await stage.linkLine(LINE);
    await stage.addPhone(CUSTOMER);
    await stage.api.call("POST", `/sessions/${sessionId}/queue/pause`);
    const send = (path: string, body: Record<string, unknown>) =>
      stage.api.call("POST", `/messages/send/${path}`, { sessionId, ...body });
    await send("text", { to: CUSTOMER, text: "the needle" });
    await send("bulk", { messages: Array.from({ length: 2_100 }, () => ({ to: CUSTOMER, text: "one more straw" })) });
    for (const said of ["the needle", "one more straw"]) stage.secrets.add(said);
    await asOperator(page, stage);
    await page.goto(accountPage(stage, `/lines/${sessionId}`));
    await button(page, "Show 180 more").click();
    await page.getByRole("link", { name: "See all 2,101 messages" }).click();
    await page.getByText("2,101 in total").waitFor();
    await page.getByLabel("Search").fill("needle");
    await page.getByRole("cell", { name: "the needle" }).waitFor();
    await page.getByLabel("Search").fill("no such thing");
    await page.getByText("Try fewer words").waitFor();
    assertQuiet();
  },
);

inPanel(
  "a webhook is made, tested, and its failed delivery is delivered again",
  async ({ page, assertQuiet }, stage) => {
    const receiver = await Receiver.start((response) => void response.writeHead(410).end());
    try {
      await asOperator(page, stage);
      await page.goto(accountPage(stage, "/webhooks"));
      await button(page, "Add a webhook").first().click();
      await page.getByLabel("Address").fill(`http://127.0.0.1:${receiver.port}/hook`);
      await button(page, "Add").click();
      stage.secrets.add((await page.locator("dialog code").textContent())!);
      await button(page, "Done, I saved it").click();
      await page.getByRole("link", { name: "Webhooks", exact: true }).first().click();
      await page.getByRole("cell", { name: "all", exact: true }).waitFor();
      await page.goBack();
      await button(page, "Send test event").click();
      await page.locator(".steps .badge", { hasText: "failed" }).first().waitFor();
      // 410 asks to be left alone: the gateway has switched it off.
      await button(page, "Turn on").click();
      await button(page, "Turn off").waitFor();
      receiver.answer = (response) => void response.writeHead(200).end();
      await button(page, "Redeliver").first().click();
      await page.locator(".steps .badge", { hasText: "delivered" }).first().waitFor();
      assert.ok(receiver.requests.length >= 2);
      await page.getByLabel("Status").selectOption("waiting");
      await page.getByText("No matches").waitFor();
      assert.equal(await page.getByText("No deliveries yet").count(), 0);
      await page.goto(accountPage(stage, "/messages?page=2"));
      await page.getByText("No matches").waitFor();
      assertQuiet();
    } finally {
      await receiver.close();
    }
  },
);

inPanel(
  "a webhook's events are changed to those that are marked, of which there is one at least",
  async ({ page }, stage) => {
    const { data: webhook } = await stage.api.call("POST", "/webhooks", { url: "http://127.0.0.1:1099/hook" });
    stage.secrets.add(webhook.secret);
    await asOperator(page, stage);
    await page.goto(accountPage(stage, `/webhooks/${webhook.id}`));
    await button(page, "Edit").click();
    await page.getByLabel("message.failed").waitFor();
    for (const event of await page.getByRole("checkbox").all()) await event.uncheck();
    await button(page, "Save").click();
    await page.locator(".wrong", { hasText: "is empty" }).waitFor();
    await page.getByLabel("message.failed").check();
    await button(page, "Save").click();
    await page.locator("dialog").waitFor({ state: "detached" });
    const saved = async () => (await stage.api.call("GET", `/webhooks/${webhook.id}`)).data;
    const { events, chats, headerNames } = await saved();
    assert.deepEqual({ events, chats, headerNames }, { events: ["message.failed"], chats: "all", headerNames: [] });

    const edit = async (change: () => Promise<unknown>) => {
      await button(page, "Edit").click();
      await change();
      await button(page, "Save").click();
      await page.locator("dialog").waitFor({ state: "detached" });
    };
    const headers = page.getByLabel("Additional headers", { exact: true });
    await edit(async () => {
      await page.locator("dialog").getByLabel("Chats").selectOption("groups");
      await headers.fill("Authorization: Basic a:b\nX-Team: 7\n");
    });
    assert.deepEqual([(await saved()).chats, (await saved()).headerNames], ["groups", ["authorization", "x-team"]]);
    // What is not entered stays, and the names are shown.
    await edit(() => page.getByText("Set: authorization, x-team.").waitFor());
    assert.deepEqual([(await saved()).chats, (await saved()).headerNames], ["groups", ["authorization", "x-team"]]);
    await edit(() => page.getByLabel("Remove the additional headers").check());
    assert.deepEqual((await saved()).headerNames, []);
    await button(page, "Edit").click();
    await headers.fill("Host: elsewhere");
    await button(page, "Save").click();
    await page.locator(".wrong", { hasText: "is set by the gateway" }).waitFor();
  },
);

inPanel(
  "the key is shown on demand, regenerated with a warning, and bound to places with care",
  async ({ page }, stage) => {
    await asOperator(page, stage);
    await page.goto(accountPage(stage, "/key"));
    await button(page, "Show the key").waitFor();
    assert.ok(!(await page.content()).includes(stage.apiKey));
    await button(page, "Show the key").click();
    await page.locator("code", { hasText: stage.apiKey }).waitFor();
    await button(page, "Regenerate key").click();
    await page.getByText("stops working immediately").waitFor();
    await button(page, "Create new key").click();
    await page.getByText("This key works now").waitFor();
    const apiKey = (await page.locator(".secret code").textContent())!;
    stage.secrets.add(apiKey);
    assert.equal((await stage.request("GET", "/account")).status, 401);
    assert.equal((await stage.request("GET", "/account", { headers: { "x-api-key": apiKey } })).status, 200);

    await page.getByLabel("Allowed IP addresses").fill("nowhere");
    await button(page, "Save").click();
    // What was refused has the focus.
    await page.locator("[name=allowedIps][aria-invalid=true]:focus").waitFor();
    await page.getByLabel("Allowed IP addresses").fill("192.0.2.0/24");
    await button(page, "Save").click();
    await page.getByText("Your own IP address is not on the list").waitFor();
    await button(page, "Back to the list").click();
    await page.getByText("lock out 127.0.0.1").waitFor();
    assert.equal((await stage.request("GET", "/account", { headers: { "x-api-key": apiKey } })).status, 200);
    await page.getByLabel("Allowed IP addresses").fill("127.0.0.0/8");
    await button(page, "Save").click();
    await page.getByText("Saved.").waitFor();
  },
);

inPanel(
  "a further key is made with what it may do, shown once, and stops working when it is removed",
  async ({ page }, stage) => {
    await asOperator(page, stage);
    await page.goto(accountPage(stage, "/key"));
    await button(page, "Add a key").click();
    await page.getByLabel("Name").fill("Shop");
    await page.getByLabel("send messages").uncheck();
    await button(page, "Add").click();
    await page.locator("dialog .wrong", { hasText: "is empty" }).waitFor();
    await page.getByLabel("read everything").check();
    // However often it is pressed, it is one key.
    await button(page, "Add").dblclick();
    await page.getByRole("heading", { name: "Save this key" }).waitFor();
    const apiKey = (await page.locator("dialog code").textContent())!;
    stage.secrets.add(apiKey);
    const ask = async (method: string, path: string) =>
      (await stage.request(method, path, { headers: { "x-api-key": apiKey } })).status;
    assert.deepEqual([await ask("GET", "/sessions"), await ask("POST", "/sessions")], [200, 403]);
    await button(page, "Done, I saved it").click();
    await page.getByRole("cell", { name: "read everything" }).waitFor();
    assert.equal(await page.locator("tbody tr").count(), 1);
    assert.ok(!(await page.content()).includes(apiKey));
    await button(page, "Remove").click();
    await page.locator("dialog").getByRole("button", { name: "Remove" }).click();
    await page.getByText("No additional keys").waitFor();
    assert.equal(await ask("GET", "/sessions"), 401);
  },
);

inPanel("an open page says that the gateway is gone, and goes on when it is back", async ({ page }, stage) => {
  const line = await stage.linkLine(LINE);
  await asOperator(page, stage);
  await page.goto(accountPage(stage, `/lines/${line.sessionId}`));
  await badge(page, "connected").waitFor();
  const renaming = await page.context().newPage();
  await renaming.goto(page.url());
  await button(renaming, "Rename").click();
  await renaming.getByLabel("Name", { exact: true }).fill("Renamed while it was gone");
  await stage.gateway.stop();
  await button(renaming, "Save").click();
  const refused = renaming.locator("dialog").getByText("The gateway is not responding");
  await refused.waitFor();
  await page.getByText("Offline: the gateway is not responding").waitFor();
  await button(page, "Sign out").click();
  await page.locator(".toast").getByText("The gateway is not responding").waitFor();
  // A page that was never open comes as soon as it can be fetched; nobody was signed out.
  await page.getByRole("link", { name: "Events" }).click();
  await stage.gateway.start();
  await page.getByRole("listitem").getByText("session.connected", { exact: true }).first().waitFor();
  await page.getByText("Offline: the gateway is not responding").waitFor({ state: "detached" });
  await refused.waitFor({ state: "detached" });
  await button(renaming, "Save").click();
  await renaming.getByRole("heading", { name: "Renamed while it was gone" }).waitFor();
  await renaming.close();

  // What happens while another tab is in front is there afterwards, once.
  const inFront = (yes: boolean) =>
    page.evaluate(`Object.defineProperty(document, "hidden", { value: ${!yes}, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"))`);
  await inFront(false);
  await stage.addPhone(CUSTOMER);
  for (const text of ["while nobody looked", "and again"]) {
    stage.secrets.add(text);
    await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text });
  }
  await inFront(true);
  await page.getByText("and again").first().waitFor();
  await page.goBack();
  await badge(page, "connected").waitFor();
  await page.goForward();
  await page.getByText("and again", { exact: true }).waitFor();
});

inPanel(
  "a code of an app is set up and asked for; a passkey opens the panel without a password",
  async ({ page }, stage) => {
    await asOperator(page, stage);
    // No browser takes a passkey for an address of numbers.
    const panel = panelOf(stage).replace("127.0.0.1", "localhost");
    await page.goto(panel);
    await signIn(page, "root@example.com");
    const devtools = await page.context().newCDPSession(page);
    await devtools.send("WebAuthn.enable");
    const options = {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
    } as const;
    await devtools.send("WebAuthn.addVirtualAuthenticator", { options: { ...options, isUserVerified: true } });
    await page.getByRole("navigation", { name: "Pages" }).waitFor();
    await page.goto(`${panel}/me`);
    await button(page, "Add a passkey").click();
    await page.getByLabel("Name").fill("Laptop");
    await page.getByLabel("Your password").fill(PASSWORD);
    await button(page, "Add").click();
    await page.getByText("Laptop").waitFor();

    await button(page, "Set up").click();
    await page.getByLabel("Your password").fill(PASSWORD);
    await button(page, "Continue").click();
    const secret = (await page.locator("dialog code").textContent())!;
    stage.secrets.add(secret);
    const bits = [...secret].map((c) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(c).toString(2).padStart(5, "0"))
      .join("");
    const bytes = Uint8Array.from(bits.match(/.{8}/g)!, (byte) => parseInt(byte, 2));
    const code = (steps: number) => totpCode(bytes, Math.floor(systemClock.now() / 30_000) + steps);
    await page.getByLabel("Code", { exact: true }).fill(code(0));
    await button(page, "Turn on").click();
    await page.locator("main").getByText("on", { exact: true }).waitFor();
    await button(page, "Sign out").first().click();
    await button(page, "Sign in with a passkey").click();
    await page.getByRole("heading", { name: "Gateway" }).waitFor();
    await button(page, "Sign out").first().click();
    await signIn(page, "root@example.com");
    // The one that was just used counts no more; the next one does already.
    await page.getByLabel("Code of your authenticator app").and(page.locator(":focus")).waitFor();
    await page.keyboard.type(code(1));
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Gateway" }).waitFor();
    await page.getByRole("link", { name: "Audit log" }).click();
    await page.getByText("signed in with a passkey", { exact: true }).waitFor();
  },
  { whole: true },
);

inPanel(
  "a queue is held and a bulk waits in it, is cancelled, and who opted out is written to no more",
  async ({ page, assertQuiet }, stage) => {
    const { sessionId } = await stage.linkLine(LINE);
    await stage.addPhone(CUSTOMER);
    await asOperator(page, stage);
    await page.goto(accountPage(stage, `/lines/${sessionId}`));
    await button(page, "Pause queue").click();
    await page.getByText("Nothing is sent until you resume").waitFor();
    const messages = Array.from({ length: 3 }, (_, i) => ({ to: CUSTOMER, text: `one of the bulk, number ${i}` }));
    await stage.api.call("POST", "/messages/send/bulk", { sessionId, messages });
    await page.getByRole("cell", { name: "the queue to be resumed" }).first().waitFor();

    await page.getByRole("link", { name: "Bulks" }).click();
    await page.getByRole("img", { name: "0 sent, 0 failed, 3 waiting" }).waitFor();
    await page.getByRole("link", { name: "Bulk of 3" }).click();
    await page.getByRole("link", { name: "Show messages" }).click();
    await page.getByText("3 in total").waitFor();
    await page.getByRole("link", { name: "Show progress" }).click();
    await button(page, "Cancel waiting messages").click();
    await page.locator("dialog").getByRole("button", { name: "Cancel waiting messages" }).click();
    await page.getByRole("img", { name: "0 sent, 3 failed, 0 waiting" }).waitFor();
    await page.goto(accountPage(stage, `/lines/${sessionId}`));
    await button(page, "Resume").click();
    await button(page, "Pause queue").waitFor();

    await page.getByRole("link", { name: "Opt-outs" }).click();
    await page.getByLabel("Words that opt the sender out").fill("STOP\nBAJA");
    await button(page, "Save").click();
    await page.getByText("Saved.").waitFor();
    await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text: "stop" });
    const row = page.getByRole("row", { name: `+${CUSTOMER}` });
    await row.waitFor();
    const send = () =>
      stage.request("POST", "/messages/send/text", {
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ sessionId, to: CUSTOMER, text: "one of the bulk, once more" }),
      });
    const refused = await send();
    assert.deepEqual([refused.status, (await refused.json()).code], [403, "recipient_opted_out"]);
    await row.getByRole("button", { name: "Remove" }).click();
    await page.locator("dialog").getByRole("button", { name: "Remove" }).click();
    await page.getByText("No opt-outs").waitFor();
    const taken = await send();
    assert.equal(taken.status, 202);
    await taken.body?.cancel();
    await page.getByLabel("Number").last().fill(`+${CUSTOMER}`);
    await button(page, "Erase permanently").click();
    await page.locator("dialog").getByRole("button", { name: "Erase permanently" }).click();
    await page.locator("dialog").waitFor({ state: "detached" });
    assert.equal(await page.locator("[name=erased]").inputValue(), "", "the number stays nowhere");
    await page.locator(".toast", { hasText: "rased" }).waitFor();
    stage.secrets.add("one of the bulk");
    assertQuiet();
  },
);

/** Presses Tab until what has this name, or these words, has the focus. */
async function focusBy(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < 60; presses++) {
    const here = await page.evaluate(
      "[document.activeElement?.getAttribute('name'), document.activeElement?.textContent?.trim()]",
    ) as (string | null)[];
    if (here.includes(name)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`${name} is not reached by Tab`);
}
