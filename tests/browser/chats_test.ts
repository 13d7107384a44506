/** The panel's chats in a real browser: each message as what it is, what is unread, and thousands of messages. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { faultsOf } from "../support/axe.ts";
import { inBrowser } from "../support/browser.ts";
import { fillChats, THE_LONG_ONE } from "../support/filled_chats.ts";
import { accountPage, asOperator } from "../support/panel_pages.ts";
import { openStage, withStage } from "../support/stage.ts";

const LINE = "4915100000011";
const ANA = "4917000000011";
const OTHER_ANA = "4917000000012";
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const poll = { name: "When?", options: [{ optionName: "Monday" }, { optionName: "Tuesday" }] };
const vcard = "BEGIN:VCARD\nVERSION:3.0\nFN:Bea\nTEL;waid=4917000000099:+49 170 00000099\nEND:VCARD";

inBrowser(
  "a chat shows each message as what it is, in the list what is unread, and is answered with a file",
  ({ page, assertQuiet }) =>
    withStage(openStage, async (stage) => {
      const { sessionId } = await stage.linkLine(LINE);
      await stage.addPhone(ANA, "Ana");
      await stage.addPhone(OTHER_ANA, "Ana");
      const write = (message: Record<string, unknown>, from = ANA) =>
        stage.control.call("POST", `/phones/${from}/messages`, { to: LINE, ...message });
      for (const text of ["good morning", "good day", "half an answer", "too early"]) stage.secrets.add(text);
      await write({ text: "good morning" }, OTHER_ANA);
      const { id } = await write({ text: "good morning" });
      await stage.control.call("POST", `/phones/${ANA}/edit`, { id, text: "good day" });
      const { id: early } = await write({ text: "too early" });
      await stage.control.call("POST", `/phones/${ANA}/revoke`, { id: early });
      await write({ file: PNG, filename: "door.png", kind: "image", caption: "our door" });
      await write({ file: PNG, filename: "plan.png", kind: "document" });
      await write({ message: { pollCreationMessage: poll } });
      await write({ message: { locationMessage: { degreesLatitude: 41.5, degreesLongitude: 2.25, name: "Shop" } } });
      await write({ message: { contactMessage: { displayName: "Bea", vcard } } });
      await write({ message: { orderMessage: { orderId: "1", token: "T", itemCount: 2, message: "please" } } });
      await asOperator(page, stage);
      await page.goto(accountPage(stage, `/chats/${sessionId}`));
      const list = page.getByRole("navigation", { name: "Chats" });
      // Two of the same name are told apart by their numbers.
      const ana = list.getByRole("link", { name: `+${ANA}` });
      await ana.getByText("Order · please").waitFor();
      await ana.getByText("8 unread").waitFor();
      await ana.click();

      const turns = page.getByRole("region", { name: "Messages" });
      const turn = (text: string) => turns.getByRole("listitem").filter({ hasText: text }).last();
      await turn("good day").getByText("edited").waitFor();
      await turn("This message was deleted.").waitFor();
      assert.equal(await turns.getByText("too early").count(), 0);
      await turn("our door").getByRole("img").waitFor({ state: "attached" });
      const download = await turn("our door").getByRole("link", { name: "Download" }).getAttribute("download");
      assert.match(download!, /^image-[\d-]+\.jpg$/);
      await turn("plan.png").getByText("Document").waitFor();
      await turn("When?").getByRole("listitem").filter({ hasText: "Tuesday" }).waitFor();
      const map = await turn("Shop").getByRole("link", { name: "Show on the map" }).getAttribute("href");
      assert.ok(map!.includes("mlat=41.5&mlon=2.25"));
      await turn("Bea").getByText("+4917000000099").waitFor();
      await turn("please").getByText("2 items").waitFor();
      await stage.api.call("POST", "/messages/send/reaction", { messageId: id, emoji: "👍" });
      await turn("good day").getByText("👍").waitFor();

      await page.getByRole("button", { name: "Mark as read" }).click();
      await ana.getByText("unread").waitFor({ state: "detached" });
      await page.getByLabel("Show", { exact: true }).selectOption("unread");
      await ana.waitFor({ state: "detached" });
      await list.getByRole("link", { name: `+${OTHER_ANA}` }).or(list.getByRole("link", { name: "Ana" })).waitFor();
      await page.getByLabel("Show", { exact: true }).selectOption("wrote");
      await ana.waitFor();

      await page.locator(".answer input[type=file]").setInputFiles({
        name: "note.pdf",
        mimeType: "application/pdf",
        buffer: Buffer.from("%PDF-1.4 a note"),
      });
      await page.getByRole("button", { name: "Remove note.pdf" }).waitFor();
      await page.getByLabel("Reply").fill("half an answer");
      await page.getByRole("button", { name: "Send", exact: true }).click();
      await turn("half an answer").getByText("note.pdf").waitFor();
      await page.getByRole("button", { name: "Remove note.pdf" }).waitFor({ state: "detached" });
      assert.equal(await page.getByLabel("Reply").inputValue(), "");

      // What waits is there too, and why something did not leave.
      await stage.api.call("POST", `/sessions/${sessionId}/disconnect`);
      const send = (body: Record<string, unknown>) =>
        stage.api.call("POST", "/messages/send/text", { sessionId, to: ANA, ...body });
      await send({ text: "good day", sendAt: new Date(Date.now() + 86_400_000).toISOString() });
      const { messageId } = await send({ text: "too early" });
      await stage.api.call("DELETE", `/messages/${messageId}`);
      await page.reload();
      await turn("scheduled for").waitFor();
      await turn("too early").getByText("failed").waitFor();
      for (const size of [{ width: 390, height: 844 }, { width: 1024, height: 768 }, { width: 1440, height: 900 }]) {
        await page.setViewportSize(size);
        assert.deepEqual(await faultsOf(page, `at ${size.width}`), []);
      }
      assertQuiet();
    }),
);

inBrowser(
  "hundreds of chats and messages are reached by scrolling, in their order",
  ({ page, assertQuiet }) =>
    withStage(openStage, async (stage) => {
      const { sessionId } = await stage.linkLine(LINE);
      const [messages, chats] = [420, 250];
      await fillChats(stage, sessionId, { messages, chats });
      await asOperator(page, stage);
      await page.setViewportSize({ width: 1024, height: 768 });
      await page.goto(accountPage(stage, `/chats/${sessionId}`));
      const list = page.getByRole("navigation", { name: "Chats" });
      for (const shown of [100, 200, chats + 1]) {
        await list.getByRole("link").nth(shown - 1).waitFor();
        assert.equal(await list.getByRole("link").count(), shown);
        if (shown <= chats) await list.getByRole("button", { name: "Show more" }).click();
      }
      await list.getByRole("link", { name: THE_LONG_ONE }).click();
      const turns = page.getByRole("region", { name: "Messages" });
      await turns.getByText(`message ${messages - 1}`, { exact: true }).waitFor();
      for (let first = messages - 50; first > 0;) {
        first = Math.max(0, first - 50);
        await turns.evaluate((it) => it.scrollTo(0, 0));
        await turns.getByText(`message ${first}`, { exact: true }).waitFor({ state: "attached" });
      }
      const texts = await turns.locator(".turn > div").allTextContents();
      assert.deepEqual(texts, Array.from({ length: messages }, (_, i) => `message ${i}`));
      assertQuiet();
    }),
);
