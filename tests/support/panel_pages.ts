/** The panel in a browser, as people go through it. */
import type { Buffer } from "node:buffer";
import type { Locator, Page } from "playwright-core";
import { PNG_DATA_URL, readQrPng } from "../../src/base/qr_png.ts";
import { openData } from "../../src/engines.ts";
import { makePasswords } from "../../src/panel/logins/password.ts";
import { makePeople } from "../../src/panel/logins/people.ts";
import { makeSignIns } from "../../src/panel/logins/sign_ins.ts";
import { Change } from "../../src/store/kv.ts";
import { runCommand } from "./gateway_process.ts";
import { type BrowserOptions, inBrowser, type Visit } from "./browser.ts";
import { silentRuntime } from "./runtime.ts";
import { openStage, type Stage, WITH_REFRESH, withStage } from "./stage.ts";
import { dataConfigOf } from "./test_store.ts";
import { until } from "./until.ts";

/** A test in a browser, on a stage of its own. */
export const inPanel = (
  name: string,
  run: (visit: Visit, stage: Stage) => Promise<void>,
  options?: BrowserOptions,
) => inBrowser(name, (visit) => withStage(() => openStage(WITH_REFRESH), (stage) => run(visit, stage)), options);

export const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
export const badge = (page: Page, text: string) => page.locator("main .badge", { hasText: text }).first();

export const PASSWORD = "a dove on the roof";

export const panelOf = ({ gateway }: Stage) => gateway.baseUrl.replace(/\/v1$/, "/panel");

/** The address of a page of the stage's account. */
export const accountPage = (stage: Stage, below = "") => `${panelOf(stage)}/accounts/${stage.accountId}${below}`;

/** A one-time link for an operator, as the command prints it, at the address where the stage's gateway is. */
export async function operatorLink(stage: Stage): Promise<string> {
  const { url } = JSON.parse(await runCommand(["operator", "link", "--json"], stage.env));
  stage.secrets.add(url.split("#")[1]);
  return `${panelOf(stage)}/welcome${new URL(url).hash}`;
}

/** Opens a one-time link and makes a login of it. */
export async function join(page: Page, link: string, login: string): Promise<void> {
  await page.goto(link);
  await page.getByLabel("Username").fill(login);
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByLabel("Repeat password").fill(PASSWORD);
  await page.getByRole("button", { name: "Create login" }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

export async function signIn(page: Page, login: string, password = PASSWORD): Promise<void> {
  await page.getByLabel("Username").fill(login);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
}

/** An operator, signed in: by the rows that a link and a page leave, with a password that is hashed at once. */
export async function asOperator(page: Page, stage: Stage): Promise<void> {
  const runtime = silentRuntime();
  const data = await openData(dataConfigOf(stage.env), runtime);
  try {
    const people = makePeople({ ...data, runtime });
    const address = "127.0.0.1";
    const passwordHash = await makePasswords(runtime.random, { cost: 2, passes: 1 }).hash(PASSWORD, address);
    const change = new Change();
    const person = await people.create(change, { login: "root@example.com", accountId: null, passwordHash });
    await data.kv.commit(change);
    const token = await makeSignIns({ ...data, people, runtime }).begin(person, { address, userAgent: "" });
    stage.secrets.add(token);
    await page.context().addCookies([{ name: "paloma", value: token, url: panelOf(stage), sameSite: "Strict" }]);
  } finally {
    data.close();
  }
}

/** Has the phone read what the page shows, as a camera would, again for each new picture, until `done` is to be seen. */
export async function scanFrom(
  page: Page,
  stage: Stage,
  { number, done, picture: name = "QR code to scan" }: { number: string; done: Locator; picture?: string },
): Promise<void> {
  const picture = page.getByAltText(name);
  let shown: string | null = null;
  await until(async () => {
    if (await done.isVisible()) return true;
    const source = await picture.getAttribute("src", { timeout: 1_000 }).catch(() => null);
    if (!source || source === shown) return null;
    const pixels = await drawn(picture).catch(() => null);
    if (!pixels || await picture.getAttribute("src", { timeout: 1_000 }).catch(() => null) !== source) return null;
    const qr = `${PNG_DATA_URL}${pixels.toString("base64")}`;
    // Where the page moved between measuring and drawing, the picture is cut: a camera looks again.
    if (!readQrPng(qr)) return null;
    shown = source;
    await stage.control.call("POST", `/phones/${number}/scan`, { qr });
    return null;
  }, "the page to show the line connected");
}

/** The picture's pixels; the page may have its address before it has drawn it. Throws when it goes meanwhile. */
async function drawn(picture: Locator): Promise<Buffer> {
  await picture.evaluate((image) => (image as unknown as { decode(): Promise<void> }).decode(), null, {
    timeout: 15_000,
  });
  return await picture.screenshot({ timeout: 15_000 });
}

/** Has the panel make a link by which somebody else links the line; it is shown until its dialog is closed. */
export async function customerLink(page: Page, stage: Stage, sessionId: string): Promise<string> {
  await page.goto(accountPage(stage, `/lines/${sessionId}`));
  await page.getByRole("button", { name: "Let someone else link it", exact: true }).click();
  const link = (await page.locator("dialog code").textContent())!;
  stage.secrets.add(link.split("#")[1]!);
  return link;
}
