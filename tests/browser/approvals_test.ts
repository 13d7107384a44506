/** The waiting list of proposals in a real browser: read, corrected, approved and refused, and logged by whom. */
import assert from "node:assert/strict";
import { httpClient } from "../../src/cli/client.ts";
import { inBrowser } from "../support/browser.ts";
import { accountPage, asOperator } from "../support/panel_pages.ts";
import { openStage, withStage } from "../support/stage.ts";

const LINE = "4915100000001";
const CUSTOMER = "4917000000001";

inBrowser(
  "a person corrects and approves a draft, and refuses another",
  ({ page, assertQuiet }) =>
    withStage(openStage, async (stage) => {
      await stage.addPhone(CUSTOMER);
      await stage.linkLine(LINE);
      const { data: { key } } = await stage.api.call("POST", "/account/keys", { name: "agent", scopes: ["propose"] });
      const agent = stage.secrets.watch(httpClient(stage.gateway.baseUrl, { "x-api-key": key }));
      const draft = (text: string) => agent.call("POST", "/messages/send/text", { to: CUSTOMER, text });
      await asOperator(page, stage);
      await page.goto(accountPage(stage));
      await page.getByRole("link", { name: "Approvals" }).click();
      await page.getByText("Nothing to approve").waitFor();
      const { messageId } = await draft("Dear custmer,\nwelcome");
      await draft("something rude");
      const row = (text: string) => page.getByRole("row").filter({ hasText: text });
      await row("custmer").getByText("agent").waitFor();
      await row("custmer").getByRole("button", { name: "Edit" }).click();
      await page.getByLabel("Text").fill("Dear customer,\nwelcome");
      await page.getByRole("button", { name: "Save" }).click();
      await row("customer").getByRole("button", { name: "Approve" }).click();
      await stage.arrival(CUSTOMER, ({ text }) => text === "Dear customer,\nwelcome");
      await row("rude").getByRole("button", { name: "Refuse" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Refuse" }).click();
      await page.getByText("Nothing to approve").waitFor();
      assert.equal((await stage.inbox(CUSTOMER)).length, 1);
      await page.goto(accountPage(stage).replace(/accounts\/.*/, "gateway/audit"));
      await page.getByText(`POST /v1/messages/${messageId}/approve`).waitFor();
      assertQuiet();
    }),
);
