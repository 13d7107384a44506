/** Webhooks and keys are made, changed and removed. */
import assert from "node:assert/strict";
import { accountPage, asOperator, button, inPanel } from "../support/panel_pages.ts";
import { Receiver } from "../support/receiver.ts";

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
