/** What the benches of accepting have in common: the message, the requests with it, and the load of them. */
import type { Client } from "../../src/cli/client.ts";
import type { Child } from "./child.ts";
import type { LinkedAccount } from "./linked_folder.ts";
import type { Load, LoadResult } from "./load_client.ts";

export const TO = "4915559999999";
export const TEXT = "Your parcel is on its way and arrives tomorrow between 9 and 12.";
/** Of an account. */
const RECIPIENTS = 1_000;
const FIRST_RECIPIENT = 4_915_500_000_000;
/** People are not written to in the order of their numbers. */
const A_PRIME = 617;
/** Of gateways that share a store. */
export const SECRET_KEY = "the secret key of the bench";
/** Of all clients of a measurement together. */
const CONNECTIONS = 64;
const WARM_MS = 3_000;
const MEASURE_MS = 2_000;

/** Lines take turns, and each writes to one after another. */
export function recipientOf(i: number, { lines, to }: { lines: number; to: readonly string[] }): string {
  return to[Math.floor(i / lines) % to.length]!;
}

/** The same message to the bare server. */
export const bareSends: Load["requests"] = [{ path: "/send", headers: {}, body: { to: TO, text: TEXT } }];

/** Texts over the first line of each account, which writes to as many people. */
export function sendsOf(accounts: readonly LinkedAccount[]): Load["requests"] {
  const recipients = Array.from({ length: RECIPIENTS }, (_, i) => FIRST_RECIPIENT + i * A_PRIME % RECIPIENTS);
  return recipients.flatMap((to) =>
    accounts.map(({ apiKey, sessionIds: [sessionId] }) => ({
      path: "/v1/messages/send/text",
      headers: { "x-api-key": apiKey },
      body: { sessionId, to: String(to), text: TEXT },
    }))
  );
}

/** Nothing departs from the account's line. */
export async function pauseLine(api: Pick<Client, "call">, { sessionIds: [id] }: LinkedAccount): Promise<void> {
  await api.call("POST", `/sessions/${id}/disconnect`);
}

/**
 * Sends without end to one server, or at the same time to several, a client and a share of the connections each. What was
 * written before, a copied folder of a hundred megabytes, say, is on disk by then: nobody's flush waits for it.
 */
export async function loadWith(
  clients: readonly Child<true>[],
  servers: readonly Pick<Load, "url" | "requests">[],
): Promise<LoadResult[]> {
  await new Deno.Command("sync").output();
  const common = {
    connections: CONNECTIONS / servers.length,
    warmMs: WARM_MS,
    measureMs: MEASURE_MS,
    status: 202,
  };
  return await Promise.all(
    servers.map((server, i) => clients[i]!.ask<LoadResult>({ ...server, ...common } satisfies Load)),
  );
}
