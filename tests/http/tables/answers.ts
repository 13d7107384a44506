/** Templates, tags, choices, proposals and verifications: what they take and what they refuse. */
import { type Case, problem, wrong } from "../../support/api_table.ts";

const TO = "34600111222";
const NAME = "table";

function asks(method: string, path: string, json?: unknown): Case["ask"] {
  return () => [method, `/v1${path}`, json === undefined ? {} : { json }];
}

function refuses(path: string, to: string, json: unknown, message?: RegExp): Case {
  const name = `${to} with ${JSON.stringify(json).slice(0, 80)} is refused at ${path}`;
  return { name, ask: asks("POST", to, json), status: 400, contains: wrong(path, message) };
}

const SEND = "/messages/send/template";
const CHOICES = "/messages/send/choices";
const options = [{ label: "A" }, { label: "B" }];

export const answerCases: readonly Case[] = [
  {
    name: "a template is created",
    ask: asks("POST", "/templates", { name: NAME, text: "Hello {{name}}" }),
    status: 201,
    contains: ['"language":"en"', '"variables":["name"]', '"options":[]'],
  },
  {
    name: "a name and language are taken once",
    ask: asks("POST", "/templates", { name: NAME, text: "again" }),
    status: 409,
    contains: problem("template_exists"),
  },
  refuses("name", "/templates", { name: "a b", text: "x" }),
  refuses("language", "/templates", { name: "x", language: "english please", text: "x" }),
  refuses("text", "/templates", { name: "x" }, /is required/),
  refuses("body", "/templates", { name: "x", text: "x", body: "x" }, /not a known field/),
  refuses("options.1.label", "/templates", { name: "x", text: "x", options: [{ label: "é" }, { label: "E" }] }),
  { name: "templates are listed", ask: asks("GET", "/templates"), status: 200, contains: [`"name":"${NAME}"`] },
  {
    name: "the first made is found",
    ask: asks("GET", `/templates/${NAME}`),
    status: 200,
    contains: ['"language":"en"'],
  },
  {
    name: "a template in another language is none",
    ask: asks("GET", `/templates/${NAME}?language=es`),
    status: 404,
    contains: problem("not_found"),
  },
  {
    name: "the texts of a template are replaced",
    ask: asks("PUT", `/templates/${NAME}`, { text: "Dear {{name}}" }),
    status: 200,
    contains: ["Dear"],
  },
  {
    name: "an unknown template is not replaced",
    ask: asks("PUT", "/templates/nothing", { text: "x" }),
    status: 404,
    contains: problem("not_found"),
  },
  {
    name: "a template is sent",
    ask: asks("POST", SEND, { to: TO, template: NAME, language: "de", variables: { name: "Anna" } }),
    status: 202,
  },
  refuses("variables.name", SEND, { to: TO, template: NAME }, /is required/),
  refuses("variables.age", SEND, { to: TO, template: NAME, variables: { name: "A", age: "3" } }, /not a variable/),
  refuses("variables.name", SEND, { to: TO, template: NAME, variables: { name: 1 } }),
  {
    name: "an unknown template is not sent",
    ask: asks("POST", SEND, { to: TO, template: "nothing" }),
    status: 404,
    contains: problem("not_found"),
  },
  refuses("messages.1.template", "/messages/send/bulk", {
    messages: [{ to: TO, text: "x" }, { to: TO, template: "nothing" }],
  }),
  refuses("messages.0.variables.name", "/messages/send/bulk", { messages: [{ to: TO, template: NAME }] }),
  refuses("messages.0.variables", "/messages/send/bulk", { messages: [{ to: TO, text: "x", variables: {} }] }),
  {
    name: "a template is deleted in all languages",
    ask: asks("DELETE", `/templates/${NAME}`),
    status: 200,
    contains: ["Dear"],
  },
  { name: "choices are sent", ask: asks("POST", CHOICES, { to: TO, text: "?", options }), status: 202 },
  refuses("options", CHOICES, { to: TO, text: "?", options: Array(13).fill({ label: "A" }) }),
  refuses("options.1.id", CHOICES, { to: TO, text: "?", options: [{ id: "2", label: "A" }, { label: "B" }] }),
  refuses("options", CHOICES, { to: TO, text: "?", options: options.slice(1), style: "poll" }, /at least two/),
  refuses("text", CHOICES, { to: TO, text: "?".repeat(256), options, style: "poll" }, /at most 255/),
  refuses("tags.0", "/messages/send/text", { to: TO, text: "x", tags: [""] }),
  refuses("tags", "/messages/send/text", { to: TO, text: "x", tags: Array.from({ length: 11 }, (_, i) => `t${i}`) }),
  refuses("cancelOnReply", "/messages/send/status", { text: "x", audience: [TO], cancelOnReply: true }),
  {
    name: "a tag without messages cancels none",
    ask: asks("DELETE", "/messages?tag=nothing"),
    status: 200,
    contains: ['"cancelled":0'],
  },
  {
    name: "nothing is cancelled without a tag",
    ask: asks("DELETE", "/messages"),
    status: 400,
    contains: wrong("tag"),
  },
  {
    name: "what waits for approval is listed",
    ask: asks("GET", "/messages/proposals?limit=5"),
    status: 200,
    contains: ['"data":[]', '"total":0'],
  },
  {
    name: "an unknown message is not approved",
    ask: asks("POST", `/messages/msg_${"0".repeat(26)}/approve`),
    status: 404,
    contains: problem("not_found"),
  },
  {
    name: "a verification is opened",
    ask: asks("POST", "/verifications", { purpose: "Log in", number: "+34 600 111 222", ttl: 60 }),
    status: 201,
    contains: [
      '"status":"pending"',
      '"text":"Log in: ',
      "https://wa.me/",
      "data:image/png;base64,",
      `"number":"${TO}"`,
    ],
  },
  {
    name: "a verification needs no body",
    ask: asks("POST", "/verifications"),
    status: 201,
    contains: ['"number":null'],
  },
  refuses("ttl", "/verifications", { ttl: 59 }),
  refuses("ttl", "/verifications", { ttl: 86_401 }),
  refuses("number", "/verifications", { number: "12" }),
  refuses("purpose", "/verifications", { purpose: "two\nlines" }),
  refuses("purpose", "/verifications", { purpose: "x".repeat(61) }),
  refuses("to", "/verifications", { to: TO }, /not a known field/),
  {
    name: "a verification needs a session that exists",
    ask: asks("POST", "/verifications", { sessionId: `ses_${"0".repeat(26)}` }),
    status: 404,
    contains: problem("not_found"),
  },
  {
    name: "an unknown verification is none",
    ask: asks("GET", `/verifications/ver_${"0".repeat(26)}`),
    status: 404,
    contains: problem("not_found"),
  },
];
