/** The operator's maintenance page in a real browser: a backup that restores, the doctor's checks, the log. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { inBrowser } from "../support/browser.ts";
import { runCommand } from "../support/gateway_process.ts";
import { asOperator, panelOf } from "../support/panel_pages.ts";
import { openStage, withStage } from "../support/stage.ts";
import { tempFolder } from "../support/temp_folder.ts";

inBrowser(
  "an operator makes a backup, downloads it and restores it, sees the checks, and reads the log",
  ({ page, assertQuiet }) =>
    withStage(openStage, async (stage) => {
      await asOperator(page, stage);
      await page.goto(`${panelOf(stage)}/gateway`);
      await page.getByRole("link", { name: "Maintenance" }).click();
      await page.getByText("No backup was made yet.").waitFor();
      await page.getByRole("button", { name: "Back up now" }).click();
      const row = page.getByRole("row").filter({ hasText: /paloma-.*\.backup/ });
      await row.getByRole("link", { name: "Download" }).waitFor();
      await page.getByText("The last backup was made").waitFor();
      const downloading = page.waitForEvent("download");
      await row.getByRole("link", { name: "Download" }).click();
      const download = await downloading;
      await using temp = await tempFolder();
      const file = join(temp.path, download.suggestedFilename());
      await download.saveAs(file);
      const dataDir = join(temp.path, "data");
      const env = { ...stage.env, PALOMA_DATA_DIR: dataDir };
      await runCommand(["restore", file], env);
      await Deno.copyFile(join(stage.dataDir, "secret.key"), join(dataDir, "secret.key"));
      const accounts = JSON.parse(await runCommand(["account", "list", "--json"], env));
      assert.deepEqual(accounts.map(({ accountId }: { accountId: string }) => accountId), [stage.accountId]);

      const check = (name: string) => page.getByRole("row").filter({ hasText: name });
      await check("data folder").getByText("can be read and written").waitFor();
      await check("gateway").getByText(`ready at ${new URL(stage.gateway.baseUrl).origin}`).waitFor();
      await page.getByLabel("Entries").selectOption({ label: "All" });
      await page.getByText("the gateway is up").waitFor();
      await page.goto(`${panelOf(stage)}/gateway/audit`);
      await page.getByText("made a backup").waitFor();
      await page.getByText("downloaded a backup").waitFor();
      assertQuiet();
    }),
);

inBrowser(
  "a backup into a folder that is not there fails with the command's reason, and makes no folder",
  ({ page }) =>
    withStage(() => openStage({ env: { PALOMA_BACKUP_DIR: "/nowhere/backups" } }), async (stage) => {
      await asOperator(page, stage);
      await page.goto(`${panelOf(stage)}/gateway/maintenance`);
      await page.getByRole("button", { name: "Back up now" }).click();
      await page.getByText("there is no folder /nowhere/backups: make it first").waitFor();
    }),
);
