/** What is done while calls of the store break: each journey tries again as its client, the network or a clock would. */
import { ANSWERS } from "./answers.ts";
import { ANA, call, isDone, type Journey, pausedLine, receive, waiting } from "./journey.ts";
import { FILES } from "./files.ts";
import { STORE_FAULTS } from "./faults.ts";
import { OTHERS } from "./others.ts";

export const JOURNEYS: readonly Journey[] = [
  {
    name: "accept a text",
    faults: STORE_FAULTS,
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
    faults: STORE_FAULTS,
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
    faults: STORE_FAULTS,
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
    faults: STORE_FAULTS,
    prepare: (world) => world.linkedSession(),
    act: (world, sessionId) => receive(world, sessionId),
  },
  {
    name: "receive a reply that cancels",
    async prepare(world) {
      await waiting(world, { cancelOnReply: true });
      return (await world.services.lines.list(world.account.id))[0]!.id;
    },
    act: (world, sessionId) => receive(world, sessionId),
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
  ...ANSWERS,
  ...OTHERS,
  ...FILES,
];
