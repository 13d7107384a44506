/** Who may come in, by which links, passwords, codes and passkeys, and how one leaves. */
import assert from "node:assert/strict";
import { totpCode } from "../../src/panel/logins/totp.ts";
import { systemClock } from "../../src/runtime.ts";
import { runCommand } from "../support/gateway_process.ts";
import {
  accountPage,
  asOperator,
  button,
  inPanel,
  join,
  operatorLink,
  panelOf,
  PASSWORD,
  signIn,
} from "../support/panel_pages.ts";

const LINE = "4915100000001";
const CUSTOMER = "4917000000001";

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
    await button(page, "Sign out").click();
    await Promise.all([signedOut.promise, ended]);
    // Not before: what needs a person is looked up every few seconds, and at the moment of the click too.
    const requests: string[] = [];
    page.on("request", (request) => requests.push(`${request.method()} ${new URL(request.url()).pathname}`));
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await page.getByRole("link", { name: "Opt-outs" }).click();
    await page.getByRole("heading", { name: "Opt-outs" }).waitFor();
    told.resolve();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    assert.equal(await page.getByText("Your session has ended").count(), 0);
    assert.deepEqual(requests.filter((request) => request.includes("/api/")), []);
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
