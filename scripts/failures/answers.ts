/** What gets answers, one journey each: choices, templates, tags, proposals, verifications. */
import type { ApiWorld } from "../../tests/support/api_world.ts";
import { ANA, call, isDone, type Journey, pausedLine, receive, waiting } from "./journey.ts";

const ONCE = { "idempotency-key": "once" };

/** Resolves to a key that only proposes. */
async function proposer(world: ApiWorld): Promise<string> {
  const made = await world.call("POST", "/v1/account/keys", { json: { name: "agent", scopes: ["propose"] } });
  return (await made.json()).data.key;
}

/** A text that waits for a person's approval. Resolves to its id. */
async function proposed(world: ApiWorld): Promise<string> {
  const [sessionId, key] = [await world.linkedSession(), await proposer(world)];
  const answer = await world.call("POST", "/v1/messages/send/text", {
    json: { sessionId, to: ANA, text: "draft" },
    key,
  });
  return (await answer.json()).messageId;
}

const template = { name: "greeting", text: "Hello {{name}}", language: "en" };

export const ANSWERS: readonly Journey[] = [
  {
    name: "send choices",
    prepare: (world) => world.linkedSession(),
    act: async (world, sessionId) => {
      const options = ["Yes", "No"].map((label) => ({ id: label, label }));
      const json = { sessionId, to: ANA, text: "Shall we?", options };
      return isDone(await call(world, "POST", "/v1/messages/send/choices", json, ONCE));
    },
  },
  {
    name: "receive an answer to choices",
    event: "choice.made",
    async prepare(world) {
      const sessionId = await world.linkedSession();
      const options = ["Yes", "No"].map((label) => ({ id: label, label }));
      await call(world, "POST", "/v1/messages/send/choices", { sessionId, to: ANA, text: "Shall we?", options });
      await world.runtime.clock.advance(30_000);
      return sessionId;
    },
    act: (world, sessionId) => receive(world, sessionId, "1"),
  },
  {
    name: "write a template",
    prepare: () => Promise.resolve(""),
    // Made before: a lost answer.
    act: async (world) => [201, 409].includes(await call(world, "POST", "/v1/templates", template)),
  },
  {
    name: "send by a template",
    async prepare(world) {
      await call(world, "POST", "/v1/templates", template);
      return await pausedLine(world);
    },
    act: async (world, sessionId) => {
      const json = { sessionId, to: ANA, template: "greeting", variables: { name: "Ana" } };
      return isDone(await call(world, "POST", "/v1/messages/send/template", json, ONCE));
    },
  },
  {
    name: "cancel by a tag",
    event: "message.failed",
    prepare: async (world) => {
      await waiting(world, { tags: ["invoice-1"] });
      return "";
    },
    act: async (world) => isDone(await call(world, "DELETE", "/v1/messages?tag=invoice-1")),
  },
  {
    name: "propose a text",
    event: "message.proposed",
    async prepare(world) {
      return `${await world.linkedSession()} ${await proposer(world)}`;
    },
    async act(world, on) {
      const [sessionId, key] = on.split(" ");
      const json = { sessionId, to: ANA, text: "draft" };
      const answer = await world.call("POST", "/v1/messages/send/text", { json, key, headers: ONCE });
      await answer.arrayBuffer();
      return isDone(answer.status);
    },
  },
  {
    name: "approve a proposal",
    event: "message.sent",
    prepare: proposed,
    // Approved before: a lost answer.
    act: async (world, id) => [200, 409].includes(await call(world, "POST", `/v1/messages/${id}/approve`)),
  },
  {
    name: "refuse a proposal",
    event: "message.failed",
    prepare: proposed,
    // Cancelled before: a lost answer.
    act: async (world, id) => [200, 204, 409].includes(await call(world, "DELETE", `/v1/messages/${id}`)),
  },
  {
    name: "receive a code",
    event: "verification.passed",
    async prepare(world) {
      const sessionId = await world.linkedSession();
      const answer = await world.call("POST", "/v1/verifications", { json: { sessionId, number: ANA } });
      return `${sessionId} ${(await answer.json()).data.code}`;
    },
    act: async (world, on) => {
      const [sessionId, code] = on.split(" ");
      return await receive(world, sessionId!, code);
    },
  },
];
