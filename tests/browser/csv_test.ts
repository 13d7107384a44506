/** A bulk from a CSV file, in a real browser, judged at the phones of its recipients. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { Page } from "playwright-core";
import type { Json } from "../../src/cli/client.ts";
import { inBrowser } from "../support/browser.ts";
import { accountPage, asOperator } from "../support/panel_pages.ts";
import { openStage, withStage } from "../support/stage.ts";

const LINE = "4915100000001";
const ANA = "4917000000001";
const BOB = "4917000000002";
const OUT = "4917000000003";

/** Drops a file on the page as a mouse does. */
async function drop(page: Page, name: string, bytes: Uint8Array): Promise<void> {
  // As text, because the types of this process know no such transfer.
  const dataTransfer = await page.evaluateHandle(`(() => {
    const transfer = new DataTransfer();
    const bytes = Uint8Array.from(atob("${Buffer.from(bytes).toString("base64")}"), (sign) => sign.charCodeAt(0));
    transfer.items.add(new File([bytes], "${name}", { type: "text/csv" }));
    return transfer;
  })()`);
  await page.dispatchEvent(".drop", "drop", { dataTransfer });
}

const latin = (text: string) => Uint8Array.from(text, (sign) => sign.charCodeAt(0));

inBrowser(
  "a CSV file fills in a template: what is wrong is shown first, the rest arrives, also in a bulk that is scheduled",
  ({ page, assertQuiet }) =>
    withStage(openStage, async (stage) => {
      await stage.linkLine(LINE);
      for (const number of [ANA, BOB, OUT]) await stage.addPhone(number);
      await stage.api.call("PUT", `/optouts/${OUT}`);
      await stage.api.call("POST", "/templates", {
        name: "due",
        language: "es",
        text: "Hola {{nombre}}, factura {{Numero_factura}}: {{total}} €",
      });
      await asOperator(page, stage);
      await page.goto(accountPage(stage, "/bulks"));
      await page.getByRole("link", { name: "New bulk" }).click();
      const rows = [
        "Nombre;Teléfono;Número factura;Importe",
        `Ana Muñoz;+49 170 0000-0001;F-1;"1.200,50"`,
        `"Bob ""el rápido""";${BOB};F-2;7`,
        "Carla;0170 0000004;F-3;8",
        `Dora;${OUT};F-4;9`,
        `Eva;4917000000005;;10`,
        "",
      ];
      await drop(page, "clientes.csv", latin(rows.join("\r\n")));
      await page.getByText("clientes.csv: 5 rows").waitFor();
      const left = page.getByRole("region", { name: "Rows that are left out" });
      await left.getByText("begins with 0: give the country code").waitFor();
      await left.getByText("has opted out of your messages").waitFor();
      await page.getByText("3 rows can be sent. 2 rows are left out:").waitFor();
      await page.getByLabel("Template").selectOption({ label: "due (es)" });
      await left.getByText("{{Numero_factura}} is empty").waitFor();
      await page.getByText("2 rows can be sent. 3 rows are left out:").waitFor();
      assert.deepEqual(await left.locator("tbody td:first-child").allInnerTexts(), ["4", "5", "6"]);
      // No column is called "total".
      const queue = page.getByRole("button", { name: "Queue 2 messages" });
      assert.equal(await queue.isDisabled(), true);
      await page.getByLabel("Column for {{total}}").selectOption({ label: "Importe" });
      assert.equal(
        (await page.locator("[data-preview]").innerText()).trim(),
        "Hola Ana Muñoz, factura F-1: 1.200,50 €",
      );
      assert.equal((await stage.inbox(ANA)).length, 0);
      await queue.click();
      await page.getByRole("heading", { name: "Bulk of 2" }).waitFor();
      await stage.arrival(ANA, ({ text }) => text === "Hola Ana Muñoz, factura F-1: 1.200,50 €");
      await stage.arrival(BOB, ({ text }) => text === 'Hola Bob "el rápido", factura F-2: 7 €');
      assert.equal((await stage.inbox(OUT)).length, 0);
      assertQuiet();

      // A text of its own, at a time of its own, from UTF-8 with a mark and a file that is chosen.
      await page.goto(accountPage(stage, "/bulks/new"));
      const text = `\u{feff}name,phone\nÅsa,${ANA}\nBo,${ANA}\n`;
      await page.getByLabel("Drop a CSV file here, or choose one").setInputFiles({
        name: "two.csv",
        mimeType: "text/csv",
        buffer: Buffer.from(text),
      });
      await page.getByText("1 row has a number that another row has, too: each is sent.").waitFor();
      await page.getByRole("textbox", { name: "Text" }).fill("Hej {{name}}");
      await page.getByLabel("Send at").fill("2020-01-01T09:00");
      await page.getByRole("button", { name: "Queue 2 messages" }).click();
      await page.getByText("is in the past").waitFor();
      const tomorrow = new Date(Date.now() + 24 * 60 * 60_000);
      await page.getByLabel("Send at").fill(
        await page.evaluate((time) => {
          const at = new Date(time);
          return new Date(time - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
        }, tomorrow.getTime()),
      );
      await page.getByRole("button", { name: "Queue 2 messages" }).click();
      await page.getByRole("heading", { name: "Bulk of 2" }).waitFor();
      const { data: queued } = await stage.api.call("GET", "/messages/history?limit=2");
      assert.deepEqual(queued.map(({ text }: Json) => text).toSorted(), ["Hej Bo", "Hej Åsa"]);
      for (const { sendAt } of queued) assert.ok(Date.parse(sendAt) > Date.now() + 23 * 60 * 60_000, sendAt);
      assert.equal((await stage.inbox(ANA)).length, 1);
      await page.goto(accountPage(stage, "/bulks/new"));
      await drop(page, "empty.csv", latin("name;phone\r\n"));
      await page.getByText("The file has no rows.").waitFor();
    }),
);
