/** Chats are found, read and answered. */
import assert from "node:assert/strict";
import { accountPage, asOperator, button, inPanel, signIn } from "../support/panel_pages.ts";
import { until } from "../support/until.ts";

const LINE = "4915100000001";
const CUSTOMER = "4917000000001";

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
    // The field may be there before its draft.
    const has = (text: string) => until(async () => await answer.inputValue() === text, `"${text}" in the field`);
    await page.locator("textarea:focus").waitFor();
    await page.keyboard.type(half);
    assert.equal(await list.evaluate((element) => element.scrollTop), place);
    await chat("Customer B").click();
    await page.locator(".turn").getByText("a question of Customer B").waitFor();
    await has("");
    await page.goBack();
    await page.locator(".turn").getByText("a question of Customer A").waitFor();
    await has(half);
    await page.reload();
    await page.locator(".turn").getByText("a question of Customer A").waitFor();
    await has(half);
    await page.context().clearCookies();
    // The page may have found out by itself.
    await page.evaluate("document.querySelector('.answer')?.requestSubmit()");
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await signIn(page, "root@example.com");
    await page.locator(".turn").getByText("a question of Customer A").waitFor();
    await has(half);
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
