/** The TypeScript client, packed and installed: its README under Node.js, its types, and sends through broken connections. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { eachOnce } from "../../scripts/clients/each_once.ts";
import { freePort, listens } from "../support/free_port.ts";
import { ROOT } from "../support/guides.ts";
import { type NodeProject, projectWithClient } from "../support/npm_package.ts";
import { onStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "447700900001";
const READER = "447700900123";
const SENDS = 120;

/** What an integrator writes; each marked line is wrong. */
const SAMPLE = `
import { type AnyEvent, EventGapError, Paloma, PalomaError, type Session, type TextMessage } from "paloma-client";
const paloma = new Paloma("http://127.0.0.1:8080/v1", "pk_x", { attempts: 3 });
const message: TextMessage = { to: "34600111222", text: "hi" };
const { messageId }: { messageId: string } = await paloma.sendText(message, { idempotencyKey: "x" });
await paloma.send("poll", { to: "34600111222", question: "?", options: ["a", "b"] });
// @ts-expect-error a poll has a question
await paloma.send("poll", { to: "34600111222", options: ["a", "b"] });
// @ts-expect-error there is no such kind
await paloma.send("pool", { to: "34600111222", question: "?", options: ["a", "b"] });
const { data } = await paloma.request("GET /sessions/{id}", { path: { id: "ses_x" } });
export const session: Session = data;
// @ts-expect-error the path has an id
await paloma.request("GET /sessions/{id}");
await paloma.request("GET /messages/history", { query: { status: "sent", page: 2 } });
// @ts-expect-error there is no such status
await paloma.request("GET /messages/history", { query: { status: "lost" } });
for await (const event of paloma.events({ after: messageId, types: ["message.failed"] })) {
  if (event.event === "message.failed") console.log(event.data.error.code);
  // @ts-expect-error not every event has a text
  console.log(event.data.text);
}
export function reason(error: unknown, event: AnyEvent): string {
  if (event.event === "message.received") return event.data.text ?? "";
  if (error instanceof EventGapError) return error.cursor;
  // @ts-expect-error there is no such code
  if (error instanceof PalomaError && error.code === "too_bad") return error.code;
  return error instanceof PalomaError && error.code === "quota_exceeded" ? error.problem.requestId ?? "" : "";
}
`;

let project: NodeProject;
Deno.test.beforeAll(async () => void (project = await projectWithClient()));
Deno.test.afterAll(async () => await project[Symbol.asyncDispose]());

onStage("the README of the TypeScript client runs as it stands, and its types refuse what is wrong", async (stage) => {
  await Deno.writeTextFile(join(project.path, "sample.ts"), SAMPLE);
  await project.check("sample.ts");

  const line = await stage.linkLine(LINE);
  await stage.addPhone(READER);
  const port = freePort();
  const readme = await Deno.readTextFile(join(ROOT, "clients/typescript/README.md"));
  const blocks = [...readme.matchAll(/```js\n(.*?)```/gs)].map(([, code]) => code!);
  for (const [i, code] of blocks.entries()) {
    const filled = code.replaceAll("http://127.0.0.1:8080/v1", stage.gateway.baseUrl).replaceAll("pk_…", stage.apiKey)
      .replaceAll("9000", String(port));
    assert.ok(!filled.includes("…"), filled);
    await Deno.writeTextFile(join(project.path, `${i}.js`), filled);
  }
  assert.equal(blocks.length, 6);
  await Deno.writeTextFile(join(project.path, "invoice.pdf"), "%PDF-1.4 an invoice");

  const messageId = (await project.run("0.js")).trim();
  await stage.status(messageId, "sent");
  const invoice = await stage.arrival(READER, ({ filename }) => filename === "invoice.pdf");
  assert.equal(invoice.caption, "Your invoice");
  await stage.arrival(READER, ({ text }) => text === "Your table is ready.");
  await stage.arrival(READER, ({ location }) => location?.name === "The shop");

  assert.equal(await project.run("1.js"), "true\n");
  assert.match(await project.run("2.js"), /^400 validation_failed \[.*path: 'to'/s);
  assert.equal(await project.run("5.js"), "connected 1\n");

  // Away in between, and back at the cursor that it keeps.
  const write = (text: string) => stage.control.call("POST", `/phones/${READER}/messages`, { to: LINE, text });
  const answersTo = async (text: string) =>
    (await stage.inbox(READER)).filter((message) => message.text === `You said: ${text}`).length;
  const answered = (text: string) => until(() => answersTo(text), `an answer to ${text}`);
  const bot = project.spawn("3.js");
  await until(async () => {
    await write("one");
    return await answersTo("one");
  }, "an answer of the bot");
  await until(() => Deno.stat(join(project.path, "cursor")).catch(() => null), "the cursor");
  bot.kill("SIGKILL");
  await bot.output();
  for (const text of ["two", "three"]) await write(text);
  const again = project.spawn("3.js");
  for (const text of ["two", "three"]) await answered(text);
  await write("four");
  await answered("four");
  again.kill("SIGKILL");
  await again.output();
  for (const text of ["two", "three", "four"]) assert.equal(await answersTo(text), 1, text);

  const { data: webhook } = await stage.api.call("POST", "/webhooks", { url: `http://127.0.0.1:${port}/` });
  stage.secrets.add(webhook.secret);
  const receiver = project.spawn("4.js", { WEBHOOK_SECRET: webhook.secret });
  await until(() => listens(port), "the receiver to listen");
  await stage.api.call("POST", `/webhooks/${webhook.id}/test`, {});
  const deliveries = `/webhooks/${webhook.id}/deliveries?status=delivered`;
  const delivered = await until(async () => (await stage.api.call("GET", deliveries)).data[0], "a delivery");
  const forged = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body: '{"event":"webhook.test"}' });
  await forged.body?.cancel();
  assert.equal(forged.status, 401);
  receiver.kill("SIGKILL");
  const printed = new TextDecoder().decode((await receiver.output()).stdout);
  assert.equal(printed.split("\n")[0], `${delivered.eventId} webhook.test`);
  assert.equal((await stage.session(line)).status, "connected");
});

onStage(
  "each send arrives once through lost connections and a kill; the full size is in `scripts/checks/clients.ts`",
  async (stage) => {
    await eachOnce(stage, { sends: SENDS, spawn: (env) => project.spawn("sender.js", env) });
  },
);
