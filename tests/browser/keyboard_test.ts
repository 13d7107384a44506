/** Five jobs of an operator and five of an agent by the keyboard alone, with the keys counted; typing a text is one. */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { httpClient } from "../../src/cli/client.ts";
import { inBrowser } from "../support/browser.ts";
import { accountPage, asOperator, join, panelOf } from "../support/panel_pages.ts";
import { openStage, withStage } from "../support/stage.ts";

const LINE = "4915100000001";
const CUSTOMER = "4917000000001";
/** Further than this nobody tabs. */
const MOST_TABS = 40;

/** The keyboard; `steps` are the keys so far. */
class Keys {
  readonly #page: Page;
  steps = 0;

  constructor(page: Page) {
    this.#page = page;
  }

  async press(...keys: string[]): Promise<void> {
    for (const key of keys) {
      await this.#page.keyboard.press(key);
      this.steps++;
    }
  }

  async type(text: string): Promise<void> {
    await this.#page.keyboard.type(text);
    this.steps++;
  }

  /** Goes to what the palette finds first. */
  async palette(words: string): Promise<void> {
    await this.press("Control+k");
    await this.#page.getByRole("combobox", { name: "Go to" }).and(this.#page.locator(":focus")).waitFor();
    // All at once: what was found for the first letters goes again.
    await this.#page.keyboard.insertText(words);
    this.steps++;
    await this.#page.locator('#palette li[aria-selected="true"]', { hasText: new RegExp(words, "i") }).first()
      .waitFor();
    await this.press("Enter");
  }

  /** Waits until a dialog has put the focus into this field: what is typed before goes nowhere. */
  async inField(label: string): Promise<void> {
    const field = this.#page.getByRole("dialog").getByLabel(label, { exact: true });
    await field.and(this.#page.locator(":focus")).waitFor();
  }

  /** Waits until a page that comes has put the focus on its heading. */
  async onPage(name: string): Promise<void> {
    await this.#page.locator("main h1:focus", { hasText: name }).waitFor();
  }

  /** Tabs to the field or button of this name. */
  async tabTo(name: string): Promise<void> {
    const focused = `(() => {
      const { activeElement: it } = document;
      return it.labels?.[0]?.textContent ?? it.getAttribute("aria-label") ?? it.textContent;
    })()`;
    for (let i = 0; i < MOST_TABS; i++) {
      await this.press("Tab");
      if ((await this.#page.evaluate(focused) as string).trim() === name) return;
    }
    throw new Error(`${MOST_TABS} tabs do not lead to ${name}`);
  }

  /** The keys of a job, which ends now. */
  done(): number {
    const { steps } = this;
    this.steps = 0;
    return steps;
  }
}

inBrowser(
  "an operator does five jobs by the keyboard alone",
  ({ page, assertQuiet }) =>
    withStage(openStage, async (stage) => {
      const { sessionId } = await stage.linkLine(LINE);
      await asOperator(page, stage);
      await page.goto(`${panelOf(stage)}/gateway`);
      await page.getByRole("heading", { name: "Gateway" }).waitFor();
      const keys = new Keys(page);
      const steps: Record<string, number> = {};

      await keys.palette("New account");
      await keys.inField("Name");
      await keys.type("Bakery");
      await keys.press("Enter");
      await page.getByRole("heading", { name: "Bakery" }).waitFor();
      steps["create an account"] = keys.done();

      await keys.palette("Invite an operator");
      await keys.inField("For");
      await keys.type("Tom");
      await keys.press("Enter");
      const link = (await page.locator("dialog code").textContent())!;
      stage.secrets.add(link.split("#")[1]!);
      steps["invite an operator"] = keys.done();
      await page.keyboard.press("Escape");
      await page.locator("dialog").waitFor({ state: "detached" });

      await keys.palette("Back up now");
      await page.getByText("The backup is being made.").waitFor();
      steps["make a backup"] = keys.done();

      await page.goto(accountPage(stage));
      await page.getByRole("heading", { name: "stage" }).waitFor();
      await keys.palette("Pause the queue");
      await page.getByText("The queue is paused.").waitFor();
      steps["pause a queue"] = keys.done();
      const queued = await stage.sendText({ sessionId, number: LINE }, CUSTOMER, "held");
      const { status } = await stage.api.call("GET", `/messages/${queued}/status`);
      assert.equal(status, "queued");

      await keys.palette("Link a line");
      await keys.inField("Name");
      await keys.type("Office");
      await keys.press("Enter");
      await page.getByAltText("QR code to scan").waitFor();
      steps["link a line"] = keys.done();

      console.log("keys of an operator:", JSON.stringify(steps));
      for (const [job, count] of Object.entries(steps)) assert.ok(count <= 5, `${job} takes ${count} keys`);
      assertQuiet();
    }),
);

inBrowser(
  "an agent does five jobs by the keyboard alone",
  ({ page, another, assertQuiet }) =>
    withStage(openStage, async (stage) => {
      await stage.linkLine(LINE);
      await stage.addPhone(CUSTOMER, "Carla");
      await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text: "where is my parcel?" });
      await asOperator(page, stage);
      await page.goto(accountPage(stage, "/people?open=new"));
      await page.getByLabel("For", { exact: true }).fill("Maria");
      await page.getByRole("button", { name: "Create the link" }).click();
      const invitation = (await page.locator("dialog code").textContent())!;
      stage.secrets.add(invitation.split("#")[1]!);
      const maria = await another();
      await join(maria, invitation, "maria");
      await maria.getByRole("link", { name: "Carla" }).waitFor();
      const keys = new Keys(maria);
      const steps: Record<string, number> = {};

      await keys.palette("Carla");
      const reply = maria.getByLabel("Reply").and(maria.locator(":focus"));
      await reply.waitFor();
      await keys.type("on its way");
      await keys.press("Enter");
      await stage.arrival(CUSTOMER, ({ text }) => text === "on its way");
      steps["answer a chat"] = keys.done();

      await keys.palette("Send a message");
      await keys.onPage("Send a message");
      await maria.getByLabel("To", { exact: true }).waitFor();
      await keys.tabTo("To");
      await keys.type(CUSTOMER);
      await keys.tabTo("Text");
      // The field of the text has the name of the choice before it.
      if (await maria.evaluate("document.activeElement.type") !== "textarea") await keys.tabTo("Text");
      await keys.type("here is more");
      await keys.press("Tab", "Enter");
      await stage.arrival(CUSTOMER, ({ text }) => text === "here is more");
      steps["send to a number"] = keys.done();

      const { data: [{ messageId }] } = await stage.api.call("GET", "/messages/history?limit=1");
      await keys.palette(messageId);
      await maria.getByText("here is more").waitFor();
      await maria.getByRole("heading", { name: "Timeline" }).waitFor();
      steps["find a message by its ID"] = keys.done();

      const { data: { key } } = await stage.api.call("POST", "/account/keys", { name: "bot", scopes: ["propose"] });
      stage.secrets.add(key);
      const bot = httpClient(stage.gateway.baseUrl, { "x-api-key": key });
      await bot.call("POST", "/messages/send/text", { to: CUSTOMER, text: "a draft" });
      await keys.palette("Approvals");
      await maria.getByRole("button", { name: "Approve" }).waitFor();
      await keys.onPage("Approvals");
      await keys.tabTo("Approve");
      await keys.press("Enter");
      await stage.arrival(CUSTOMER, ({ text }) => text === "a draft");
      steps["approve a draft"] = keys.done();

      await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text: "thanks" });
      await keys.palette("Carla");
      await maria.getByRole("button", { name: "Mark as read" }).waitFor();
      await maria.locator(".turn", { hasText: "thanks" }).waitFor();
      await reply.waitFor();
      await keys.press("Shift+Tab");
      while ((await maria.evaluate("document.activeElement.textContent") as string).trim() !== "Mark as read") {
        await keys.press("Shift+Tab");
        assert.ok(keys.steps < MOST_TABS);
      }
      await keys.press("Enter");
      await maria.getByRole("button", { name: "Mark as read" }).waitFor({ state: "detached" });
      steps["mark a chat as read"] = keys.done();

      console.log("keys of an agent:", JSON.stringify(steps));
      for (const [job, count] of Object.entries(steps)) assert.ok(count <= 14, `${job} takes ${count} keys`);
      assertQuiet();
    }),
);
