/** What others are asked for or have removed: webhooks, files of messages, erasures, accounts. */
import { ResponseHeaders } from "../../src/egress/http1.ts";
import type { ApiWorld } from "../../tests/support/api_world.ts";
import { accountKeys } from "../../src/account/rows.ts";
import { erasureKeys } from "../../src/erasure/rows.ts";
import { FAULTS, WEB_FAULTS } from "./faults.ts";
import { ANA, call, isDone, type Journey, receive, waiting, type Web } from "./journey.ts";

const OK = new TextEncoder().encode("ok");
const PDF = new TextEncoder().encode("%PDF-1.7 an invoice");

/** Answers webhooks with 200, and with a PDF who asks for a file. */
function web(): Web {
  const seen = new Set<string>();
  return {
    seen,
    fetch(request) {
      const { url, method, headers } = request;
      seen.add(`${method} ${url} ${headers?.["x-webhook-id"] ?? ""}`);
      // Of turns of the event loop alone: a blob is read by the runtime, which may take longer than a try.
      const body = ReadableStream.from([method === "POST" ? OK : PDF]);
      return Promise.resolve({
        status: 200,
        headers: new ResponseHeaders(),
        url: new URL(url),
        body,
        discard: () => body.cancel(),
      });
    },
  };
}

async function onlySession(world: ApiWorld): Promise<string> {
  return (await world.services.lines.list(world.account.id))[0]!.id;
}

const resume = async (world: ApiWorld, sessionId: string) =>
  isDone(await call(world, "POST", `/v1/sessions/${sessionId}/queue/resume`));

export const OTHERS: readonly Journey[] = [
  {
    name: "deliver to a webhook",
    web,
    faults: [...FAULTS, ...WEB_FAULTS],
    event: "message.sent",
    async prepare(world) {
      await call(world, "POST", "/v1/webhooks", { url: "https://customer.test/hook", events: ["message.sent"] });
      await waiting(world);
      return await onlySession(world);
    },
    act: resume,
  },
  {
    name: "fetch a file and send it",
    web,
    isOnDisk: true,
    // A world that ends takes its files with it.
    faults: ["refused", "unknown", "late", ...WEB_FAULTS],
    event: "message.sent",
    async prepare(world) {
      const sessionId = await world.linkedSession();
      await call(world, "POST", `/v1/sessions/${sessionId}/queue/pause`);
      const fileUrl = "https://customer.test/invoice.pdf";
      await call(world, "POST", "/v1/messages/send/document", { sessionId, to: ANA, fileUrl });
      return sessionId;
    },
    act: resume,
  },
  {
    name: "erase a person",
    async prepare(world) {
      await waiting(world);
      const sessionId = await onlySession(world);
      await receive(world, sessionId);
      return sessionId;
    },
    async act(world) {
      const { signal } = new AbortController();
      // It waits for a result, which the sweep then has.
      const status = await call(world, "DELETE", `/v1/data/${ANA}`);
      await world.sweeps["erased people"](signal);
      const left = await Array.fromAsync(world.kv.list({ prefix: erasureKeys.erasuresOf(world.account.id) }));
      return isDone(status) && left.length === 0;
    },
  },
  {
    name: "delete an account",
    async prepare(world) {
      await waiting(world);
      await receive(world, await onlySession(world));
      return world.account.id;
    },
    async act(world, accountId) {
      const { signal } = new AbortController();
      await world.accounts.remove(accountId).catch((error) => {
        if (error.code !== "not_found") throw error;
      });
      await world.sweeps["removed accounts"](signal);
      // Its lines go first.
      return await world.sweeps["removed accounts"](signal) > 0 || !await isThere(world, accountId);
    },
  },
];

async function isThere(world: ApiWorld, accountId: string): Promise<boolean> {
  return (await world.kv.get(accountKeys.account(accountId))).value !== null;
}
