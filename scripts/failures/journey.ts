/** A journey on which calls of the store break, and the steps that several share. */
import type { SafeFetch } from "../../src/egress/safe_fetch.ts";
import type { ApiWorld } from "../../tests/support/api_world.ts";
import { plainIncoming } from "../../tests/support/incoming.ts";
import type { BucketHere } from "./bucket_here.ts";
import type { Calls, Fault } from "./faults.ts";

export interface Journey {
  name: string;
  /** What must be there before. Resolves to what the journey works on. */
  prepare(world: ApiWorld): Promise<string>;
  /** One try. Resolves to whether it has succeeded. */
  act(world: ApiWorld, on: string): Promise<boolean>;
  /** An event that it must leave. */
  event?: string;
  /** What webhooks and addresses of files are answered by, if it needs that. */
  web?(): Web;
  /** Whether it waits for files, in real time. */
  isOnDisk?: boolean;
  /** Where its files are; on disk if left out. */
  bucket?(): BucketHere;
  /** Breaks the n-th call of another place than store and web; null for a fault of those. */
  breaks?(world: ApiWorld, fault: Fault, n: number, bucket?: BucketHere): Calls | null;
  /** Those that it is tried with; all of the store's if left out. */
  faults?: readonly Fault[];
  /** What may be left in another number, by names of the census. */
  varies?(fault: Fault): RegExp | null;
  /** When files that are left are over; two days if left out. */
  overAfterMs?: number;
}

/** Something that is done while calls break. */
export interface Trial {
  name: string;
  faults: readonly Fault[];
  event?: string;
  /** Does it with the n-th call broken, from 1; none if `n` is 0. */
  run(fault: Fault, n: number): Promise<Outcome>;
}

export interface Outcome {
  /** How many calls there were. */
  calls: number;
  /** Whether it succeeded in the end. */
  isDone: boolean;
  /** What is left, as numbers to be compared. */
  left: ReadonlyMap<string, number>;
}

/** Of a journey whose tries each leave a file of their own. */
export const OWN_FILES = /^(rows of (file|upload)\w*|files)$/;

/** The other side of requests; `seen`: what it was asked, each once. */
export interface Web extends Pick<SafeFetch, "fetch"> {
  seen: Set<string>;
}

export const ANA = "491555000001";
const SECOND_MS = 1_000;

export async function call(
  world: ApiWorld,
  method: string,
  path: string,
  json?: unknown,
  headers = {},
): Promise<number> {
  const response = await world.call(method, path, { ...(json === undefined ? {} : { json }), headers });
  await response.arrayBuffer();
  return response.status;
}

/** A text that waits on a paused line. Resolves to its id. */
export async function waiting(world: ApiWorld, more: Record<string, unknown> = {}): Promise<string> {
  const sessionId = await world.linkedSession();
  await call(world, "POST", `/v1/sessions/${sessionId}/queue/pause`);
  const response = await world.call("POST", "/v1/messages/send/text", {
    json: { sessionId, to: ANA, text: "hello", ...more },
  });
  return (await response.json()).messageId;
}

export async function pausedLine(world: ApiWorld): Promise<string> {
  const sessionId = await world.linkedSession();
  await call(world, "POST", `/v1/sessions/${sessionId}/queue/pause`);
  return sessionId;
}

/** The network delivers the text, and again until it is told that it was received. */
export async function receive(world: ApiWorld, sessionId: string, text = "hola"): Promise<boolean> {
  const chat = `${ANA}@s.whatsapp.net`;
  const timestamp = Math.floor(world.runtime.clock.now() / SECOND_MS);
  await world.network.of(sessionId).receive(plainIncoming({ networkId: "3A", chat, number: ANA, timestamp, text }));
  return true;
}

export const isDone = (status: number) => status < 300;
