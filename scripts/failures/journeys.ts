/** What is done while calls of the store break: each journey tries again as its client, the network or a clock would. */
import type { ApiWorld } from "../../tests/support/api_world.ts";
import { plainIncoming } from "../../tests/support/incoming.ts";

export interface Journey {
  name: string;
  /** What must be there before. Resolves to what the journey works on. */
  prepare(world: ApiWorld): Promise<string>;
  /** One try. Resolves to whether it has succeeded. */
  act(world: ApiWorld, on: string): Promise<boolean>;
}

const ANA = "491555000001";
const SECOND_MS = 1_000;

async function call(world: ApiWorld, method: string, path: string, json?: unknown, headers = {}): Promise<number> {
  const response = await world.call(method, path, { ...(json === undefined ? {} : { json }), headers });
  await response.arrayBuffer();
  return response.status;
}

/** A text that waits on a paused line. Resolves to its id. */
async function waiting(world: ApiWorld, more: Record<string, unknown> = {}): Promise<string> {
  const sessionId = await world.linkedSession();
  await call(world, "POST", `/v1/sessions/${sessionId}/queue/pause`);
  const response = await world.call("POST", "/v1/messages/send/text", {
    json: { sessionId, to: ANA, text: "hello", ...more },
  });
  return (await response.json()).messageId;
}

async function pausedLine(world: ApiWorld): Promise<string> {
  const sessionId = await world.linkedSession();
  await call(world, "POST", `/v1/sessions/${sessionId}/queue/pause`);
  return sessionId;
}

/** The network delivers the text, and again until it is told that it was received. */
async function receive(world: ApiWorld, sessionId: string): Promise<boolean> {
  const chat = `${ANA}@s.whatsapp.net`;
  const timestamp = Math.floor(world.runtime.clock.now() / SECOND_MS);
  await world.network.of(sessionId).receive(plainIncoming({ networkId: "3A", chat, number: ANA, timestamp }));
  return true;
}

const isDone = (status: number) => status < 300;

export const JOURNEYS: readonly Journey[] = [
  {
    name: "accept a text",
    prepare: pausedLine,
    act: async (world, sessionId) =>
      isDone(
        await call(world, "POST", "/v1/messages/send/text", { sessionId, to: ANA, text: "hello" }, {
          "idempotency-key": "once",
        }),
      ),
  },
  {
    name: "accept a bulk",
    prepare: pausedLine,
    async act(world, sessionId) {
      const messages = [ANA, "491555000002", "491555000003"].map((to) => ({ to, text: "hello" }));
      const status = await call(world, "POST", "/v1/messages/send/bulk", { sessionId, messages }, {
        "idempotency-key": "once",
      });
      return isDone(status);
    },
  },
  {
    name: "cancel a message",
    prepare: waiting,
    // Cancelled before: a lost answer.
    act: async (world, id) => [200, 204, 409].includes(await call(world, "DELETE", `/v1/messages/${id}`)),
  },
  {
    name: "reschedule a message",
    prepare: waiting,
    act: async (world, id) => isDone(await call(world, "PATCH", `/v1/messages/${id}`, { priority: "high" })),
  },
  {
    name: "send",
    async prepare(world) {
      await waiting(world);
      return (await world.services.lines.list(world.account.id))[0]!.id;
    },
    async act(world, sessionId) {
      return isDone(await call(world, "POST", `/v1/sessions/${sessionId}/queue/resume`));
    },
  },
  {
    name: "receive a text",
    prepare: (world) => world.linkedSession(),
    act: receive,
  },
  {
    name: "receive a reply that cancels",
    async prepare(world) {
      await waiting(world, { cancelOnReply: true });
      return (await world.services.lines.list(world.account.id))[0]!.id;
    },
    act: receive,
  },
  {
    name: "name a session",
    prepare: (world) => world.linkedSession(),
    act: async (world, id) => isDone(await call(world, "PATCH", `/v1/sessions/${id}`, { name: "Another" })),
  },
  {
    name: "delete a session",
    prepare: (world) => world.linkedSession(),
    act: async (world, id) => [200, 204, 404].includes(await call(world, "DELETE", `/v1/sessions/${id}`)),
  },
];
