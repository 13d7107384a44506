/**
 * The node package for n8n: linted and built by n8n's own tool. With `--real` it is installed in a real n8n on a
 * sandbox, whose command line imports and runs the shipped workflows; the phones judge what arrives. Needs PostgreSQL.
 */
import assert from "node:assert/strict";
import { openStage, type Stage, withStage } from "../../tests/support/stage.ts";
import { until } from "../../tests/support/until.ts";
import { parsed, scriptCommand } from "../command.ts";
import { buildPackage } from "./n8n/package.ts";
import { type N8n, openN8n } from "./n8n/server.ts";
import { chain, formPath, MANUALLY, MODEL, PALOMA, shippedWorkflows } from "./n8n/workflows.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

const LINE = "447700900001";
const CUSTOMER = "447700900123";
const APPROVER = "447700900124";
/** Somebody who is asked and never answers. */
const EXPIRED = "447700900125";
/** The workflows that begin with the trigger. */
const TRIGGERED = ["agent-with-approval", "inbox-to-slack", "menu-bot"];
const PDF = new TextEncoder().encode("%PDF-1.4\n% an invoice\n%%EOF\n");
const DRAFT = "Yes, it left this morning.";

const command = scriptCommand("n8n", "Lints and builds the node package for n8n")
  .option("--real", "installs it in a real n8n as well, and runs the shipped workflows");
const { options } = parsed<{ real?: true }>(command);

/** Stands in for what is on the internet: a language model, and the incoming webhook of a chat. */
function outside() {
  const posted: Json[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const body = await request.json();
    if (!request.url.endsWith("/chat/completions")) {
      posted.push(body);
      return new Response("ok");
    }
    const message = { role: "assistant", content: DRAFT };
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    const choices = [{ index: 0, message, finish_reason: "stop" }];
    return Response.json({ id: "1", object: "chat.completion", created: 0, model: body.model, choices, usage });
  });
  return { url: `http://127.0.0.1:${server.addr.port}`, posted, end: () => server.shutdown() };
}

/** Every action that the shipped workflows do not use, run by `n8n execute`. */
async function actions(stage: Stage, n8n: N8n, sessionId: string): Promise<void> {
  const to = CUSTOMER;
  const message = { resource: "message", to, options: {} };
  await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, {
    to: LINE,
    text: "from the phone",
  });
  await stage.api.call("POST", "/templates", { name: "hello", language: "en", text: "Hello {{name}}" });
  const scheduled = "={{ $now.plus({ days: 2 }).toISO() }}";
  const workflow = chain("actions", MANUALLY, [
    ["lines", { resource: "line", operation: "getAll" }],
    ["check", { resource: "line", operation: "checkNumber", sessionId, number: to }],
    ["text", { ...message, operation: "sendText", text: "a text", options: { tags: "one,two", priority: "high" } }],
    ["location", { ...message, operation: "sendLocation", latitude: 51.5, longitude: -0.12, place: "London" }],
    ["contact", {
      ...message,
      operation: "sendContact",
      contacts: { entry: [{ name: "Ada", phone: "447700900124", organization: "" }] },
    }],
    ["poll", { ...message, operation: "sendPoll", question: "When?", pollOptions: ["Today", "Tomorrow"] }],
    ["choices", {
      ...message,
      operation: "sendChoices",
      text: "Which?",
      choices: { entry: [{ label: "Red", id: "red" }, { label: "Blue", id: "" }] },
      style: "numbers",
    }],
    ["template", {
      ...message,
      operation: "sendTemplate",
      template: "hello",
      variables: { entry: [{ name: "name", value: "Ada" }] },
    }],
    ["url", {
      ...message,
      operation: "sendFile",
      sendAs: "file",
      source: "url",
      fileUrl: `${stage.gateway.baseUrl.replace("/v1", "")}/openapi.json`,
      filename: "by address.json",
    }],
    ["chats", { resource: "chat", operation: "getAll", sessionId, returnAll: true, filters: {} }],
    ["read", { resource: "chat", operation: "getMessages", sessionId, chat: to, limit: 50 }],
    ["react", {
      resource: "message",
      operation: "sendReaction",
      messageId: "={{ $('read').all().find(({ json }) => json.text === 'from the phone').json.messageId }}",
      emoji: "👍",
      options: {},
    }],
    ["forward", {
      ...message,
      operation: "sendForward",
      to: APPROVER,
      messageId: "={{ $('read').all().find(({ json }) => json.text === 'from the phone').json.messageId }}",
    }],
    ["seen", { resource: "chat", operation: "markRead", sessionId, chat: to }],
    ["later", { ...message, operation: "sendText", text: "later", options: { sendAt: scheduled, tags: "later" } }],
    ["move", {
      resource: "queue",
      operation: "reschedule",
      messageId: "={{ $('later').item.json.messageId }}",
      sendAt: "={{ $now.plus({ days: 3 }).toISO() }}",
      priority: "",
    }],
    ["waiting", { resource: "queue", operation: "getAll", sessionId, limit: 50 }],
    ["cancel", { resource: "queue", operation: "cancel", messageId: "={{ $('later').item.json.messageId }}" }],
    ["pause", { resource: "queue", operation: "pause", sessionId }],
    ["resume", { resource: "queue", operation: "resume", sessionId }],
    ["status", { resource: "message", operation: "sendStatus", text: "a status", audience: to, options: {} }],
    ["get", { resource: "message", operation: "get", messageId: "={{ $('text').item.json.messageId }}" }],
  ]);
  const file = await Deno.makeTempFile({ suffix: ".json" });
  await Deno.writeTextFile(file, JSON.stringify(workflow));
  await n8n.command("import:workflow", `--input=${file}`);
  await Deno.remove(file);
  const said = await n8n.command("execute", "--id=actions", "--rawOutput");
  const result = JSON.parse(said.slice(said.indexOf("{")));
  const { error, runData } = result.data.resultData;
  assert.equal(error, undefined, JSON.stringify(error));
  const of = (name: string): Json[] => runData[name][0].data.main[0].map(({ json }: Json) => json);
  const [{ number }] = of("chats");
  assert.equal(number, CUSTOMER);
  assert.equal(of("check")[0].exists, true);
  assert.ok(of("waiting").some(({ messageId }) => messageId === of("later")[0].messageId));
  const later = of("move")[0].sendAt;
  assert.ok(Date.parse(later) > Date.now() + 2.5 * 86_400_000, later);
  assert.equal(of("cancel")[0].error.code, "cancelled");
  for (const text of ["a text", "Hello Ada"]) await stage.arrival(CUSTOMER, (message) => message.text === text);
  await stage.arrival(CUSTOMER, (message) => message.location?.name === "London");
  await stage.arrival(CUSTOMER, (message) => message.poll?.name === "When?" || message.poll?.question === "When?");
  await stage.arrival(CUSTOMER, (message) => /1\D+Red\n.*2\D+Blue/s.test(message.text ?? ""));
  await stage.arrival(CUSTOMER, (message) => message.filename === "by address.json");
  await stage.arrival(CUSTOMER, (message) => message.reaction?.emoji === "👍" || message.emoji === "👍");
  await stage.arrival(APPROVER, (message) => message.text === "from the phone");
  console.log(`${Object.keys(runData).length - 1} actions by n8n execute, and the phone has what was sent`);
}

/** Each shipped workflow, judged from outside n8n. */
const WORKFLOWS: Record<string, (at: { stage: Stage; n8n: N8n; posted: Json[]; sessionId: string }) => Promise<void>> =
  {
    async "invoice-from-a-form"({ stage, n8n }) {
      const form = new FormData();
      const at = `${n8n.url}/form/${await formPath()}`;
      const page = await (await fetch(at)).text();
      assert.match(page, /Send an invoice/);
      for (const [i, value] of ["Ada", CUSTOMER, "1042"].entries()) form.append(`field-${i}`, value);
      form.append("field-3", new Blob([PDF], { type: "application/pdf" }), "1042.pdf");
      const answer = await fetch(at, { method: "POST", body: form });
      assert.ok(answer.ok, await answer.text());
      const arrived = await stage.arrival(CUSTOMER, (message) => message.filename === "Invoice 1042.pdf");
      const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", PDF));
      assert.equal(arrived.sha256, arrived.sha256.length === 64 ? digest.toHex() : digest.toBase64());
      assert.match(arrived.caption, /^Hello Ada, here is your invoice 1042/);
    },

    async "reminders-until-paid"({ stage, n8n, sessionId }) {
      const post = async (path: string, body: Json) => {
        const headers = { "content-type": "application/json" };
        const answer = await fetch(`${n8n.url}/webhook/${path}`, {
          method: "POST",
          headers,
          body: JSON.stringify(body),
        });
        assert.ok(answer.ok, await answer.text());
      };
      const due = new Date(Date.now() + 5 * 86_400_000).toISOString().slice(0, 10);
      await post("invoice-sent", { number: CUSTOMER, invoice: "2001", due });
      const line = { sessionId, number: LINE };
      await until(async () => (await stage.queue(line)).length === 3, "three reminders");
      await post("invoice-paid", { number: CUSTOMER, invoice: "2001" });
      await stage.arrival(CUSTOMER, (message) => message.text === "Thank you, invoice 2001 is paid.");
      assert.deepEqual(await stage.queue(line), []);
    },

    async "menu-bot"({ stage }) {
      await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text: "Hello!" });
      await stage.arrival(CUSTOMER, (message) => /What can we do for you\?/.test(message.text ?? ""));
      await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text: "1" });
      await stage.arrival(CUSTOMER, (message) => /^We are open/.test(message.text ?? ""));
      const menus = (await stage.inbox(CUSTOMER)).filter(({ text }) => /What can we do/.test(text ?? ""));
      assert.equal(menus.length, 1, "the answer is no new question");
    },

    async "inbox-to-slack"({ stage, posted }) {
      await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text: "for the team" });
      const { text } = await until(() => posted.find(({ text }) => text?.includes("for the team")), "a post");
      assert.match(text, /^\*.+\* on line 447700900001: for the team$/);
    },

    async "agent-with-approval"({ stage }) {
      const question = "Has my order left?";
      await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text: question });
      await stage.arrival(APPROVER, (message) => message.text?.includes(question) && message.text.includes(DRAFT));
      const before = (await stage.inbox(CUSTOMER)).filter(({ text }) => text === DRAFT);
      assert.deepEqual(before, [], "nothing is sent without approval");
      await stage.control.call("POST", `/phones/${APPROVER}/messages`, { to: LINE, text: "1" });
      const sent = await stage.arrival(CUSTOMER, (message) => message.text === DRAFT);
      assert.equal(sent.quoted?.text, question);
    },
  };

/** A workflow that asks who is named, and says to them what came of it. */
function asking(): Json {
  const start = {
    id: "start",
    name: "Start",
    type: "n8n-nodes-base.webhook",
    typeVersion: 2.1,
    webhookId: "asking",
    parameters: { httpMethod: "POST", path: "asking", options: {} },
  };
  const to = "={{ $('Start').item.json.body.to }}";
  return chain("asking", start, [
    ["ask", {
      resource: "message",
      operation: "sendAndWait",
      to,
      text: "How many?",
      answer: "text",
      timeLimit: "={{ $json.body.minutes }}",
      unit: "minutes",
    }],
    ["say", {
      resource: "message",
      operation: "sendText",
      to,
      text: "={{ $json.answered ? 'You said ' + $json.text : 'No answer' }}",
      options: {},
    }],
  ]);
}

async function ask(n8n: N8n, to: string, minutes = 0.02): Promise<void> {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ to, minutes });
  const answer = await fetch(`${n8n.url}/webhook/asking`, { method: "POST", headers, body });
  assert.ok(answer.ok, await answer.text());
}

async function answers(stage: Stage, n8n: N8n): Promise<void> {
  // n8n looks once a minute for what has waited long enough.
  await within(90_000, () => stage.arrival(EXPIRED, ({ text }) => text === "No answer"));
  await ask(n8n, CUSTOMER, 5);
  await stage.arrival(CUSTOMER, ({ text }) => text === "How many?");
  const write = (from: string, text: string) =>
    stage.control.call("POST", `/phones/${from}/messages`, { to: LINE, text });
  await write(APPROVER, "not mine to answer");
  await write(CUSTOMER, "three");
  await stage.arrival(CUSTOMER, ({ text }) => text === "You said three");
  const { data } = await stage.api.call("GET", "/webhooks");
  const waiting = data.filter(({ url }: Json) => /\/webhook-waiting\/\d+\/ask\?/.test(url));
  assert.deepEqual(waiting, [], "no webhook is left, not even of the question that nobody answered");
}

/** Waits longer than the usual wait does. */
async function within<T>(ms: number, wait: () => Promise<T>): Promise<T> {
  const end = Date.now() + ms;
  for (;;) {
    try {
      return await wait();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}

/** As its editor does it. */
async function switchOff(stage: Stage, n8n: N8n): Promise<void> {
  const hooks = async (): Promise<Json[]> => {
    const { data } = await stage.api.call("GET", "/webhooks");
    return data.filter(({ url }: Json) => !url.includes("/webhook-waiting/"));
  };
  const triggers = await hooks();
  assert.equal(triggers.length, TRIGGERED.length, "one for each trigger");
  const [{ url }] = triggers;
  const before = await executions(n8n);
  const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
  assert.equal(answer.status, 401, await answer.text());
  for (const { id } of await hooks()) await stage.api.call("POST", `/webhooks/${id}/test`);
  assert.equal(await executions(n8n), before, "neither starts a workflow");
  for (const [i, id] of TRIGGERED.entries()) {
    await n8n.rest("POST", `/workflows/${id}/deactivate`, {});
    assert.equal((await hooks()).length, TRIGGERED.length - i - 1, `the webhook of ${id}`);
  }
}

async function executions(n8n: N8n): Promise<number> {
  return (await n8n.rest("GET", "/executions?limit=100")).results.length;
}

async function real(packed: string): Promise<void> {
  const begun = performance.now();
  const seconds = () => `${Math.round((performance.now() - begun) / 1000)} s`;
  const n8n = await openN8n(packed);
  const { url, posted, end } = outside();
  try {
    await withStage(openStage, async (stage) => {
      const { sessionId } = await stage.linkLine(LINE);
      await stage.addPhone(CUSTOMER, "Ada");
      await stage.addPhone(APPROVER, "Olga");
      await stage.addPhone(EXPIRED);
      const folder = await Deno.makeTempDir();
      const baseUrl = stage.gateway.baseUrl.replace("/v1", "");
      const credentials = [
        { ...PALOMA, type: "palomaApi", data: { baseUrl, apiKey: stage.apiKey } },
        { ...MODEL, type: "openAiApi", data: { apiKey: "sk-none", url } },
      ];
      await Deno.writeTextFile(`${folder}/credentials.json`, JSON.stringify(credentials));
      await n8n.command("import:credentials", `--input=${folder}/credentials.json`);
      await Deno.remove(`${folder}/credentials.json`);
      const ids = await shippedWorkflows(folder, { webhook: `${url}/incoming`, approver: APPROVER });
      assert.deepEqual(ids, Object.keys(WORKFLOWS).sort());
      await n8n.command("import:workflow", "--separate", `--input=${folder}`);
      await Deno.remove(folder, { recursive: true });
      console.log(`the five workflows are imported (${seconds()})`);
      await actions(stage, n8n, sessionId);
      console.log(`(${seconds()})`);

      const file = await Deno.makeTempFile({ suffix: ".json" });
      await Deno.writeTextFile(file, JSON.stringify(asking()));
      await n8n.command("import:workflow", `--input=${file}`);
      for (const id of [...ids, "asking"]) await n8n.command("publish:workflow", `--id=${id}`);
      await n8n.start();
      await until(async () => (await stage.api.call("GET", "/webhooks")).data.length === TRIGGERED.length, "webhooks");
      console.log(`n8n runs, and they are published (${seconds()})`);
      await ask(n8n, EXPIRED);
      for (const [name, judge] of Object.entries(WORKFLOWS)) {
        await judge({ stage, n8n, posted, sessionId });
        console.log(`${name}: as it should be (${seconds()})`);
      }
      await answers(stage, n8n);
      console.log(`send and wait goes on with the answer, and without one when the time is up (${seconds()})`);
      await switchOff(stage, n8n);
      console.log(
        `each trigger's webhook refuses what is not signed, and is gone when it is switched off (${seconds()})`,
      );
    });
  } finally {
    await n8n.end();
    await end();
  }
}

const packed = await buildPackage();
console.log("lint is clean, and the package builds");
if (options.real) await real(packed);
