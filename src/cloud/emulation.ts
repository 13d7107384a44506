/** What the official API does otherwise than a linked line: it has a window, approves templates, and fails on demand. */
import { ResponseHeaders } from "../egress/http1.ts";
import type { SafeFetch, SafeRequest, SafeResponse } from "../egress/safe_fetch.ts";
import { laneOf } from "../line/chats.ts";
import { chatOf } from "../message/message.ts";
import { type Clock, sleep } from "../runtime.ts";
import type { Kv } from "../store/kv.ts";
import { CloudError } from "./errors.ts";

/** Faults on demand, by kind; the type is what a fault says. */
interface EmulatedFaults {
  /** A send is refused with this code. */
  cloud_error: number;
  /** A webhook's request comes this much later, ms. */
  webhook_late: number;
  webhook_twice: true;
  webhook_lost: true;
  bad_signature: true;
}

/** The state of the emulated API. A gateway has none. */
export interface Emulation {
  /** Signs all webhooks. */
  appSecret: string;
  templateStatus(name: string): string;
  /** Returns what the fault says that affects the next event of the phone number; null if none does. */
  take<Kind extends keyof EmulatedFaults>(phone: string, kind: Kind): EmulatedFaults[Kind] | null;
}

/** A send, before it is accepted. */
interface Send {
  lineId: string;
  /** The line's digits. */
  phone: string;
  to: string;
  /** Name of the template; null for any other message. */
  template: string | null;
}

/** Status by code, where it is not 400. */
const STATUSES: Readonly<Record<number, number>> = { 10: 403, 190: 401, 130429: 429, 131000: 500, 132001: 404 };
const RETRY_AFTER_SECONDS = 1;

/** Returns the check that refuses what the official API would refuse. It throws CloudError, StoreError. */
export function makeEmulatedCheck({ emulation, kv, clock }: { emulation: Emulation; kv: Kv; clock: Clock }) {
  const refusal = (code: number, detail: string) =>
    new CloudError(code, detail, STATUSES[code] ?? 400, code === 130429 ? RETRY_AFTER_SECONDS : undefined);
  return async ({ lineId, phone, to, template }: Send): Promise<void> => {
    const code = emulation.take(phone, "cloud_error");
    if (code !== null) throw refusal(code, "A fault that was asked for.");
    if (template !== null) {
      const status = emulation.templateStatus(template);
      if (status !== "APPROVED") throw refusal(132001, `The template ${template} is ${status}.`);
      return;
    }
    const chat = to.includes("@") ? chatOf(to) : to.replaceAll(/\D/g, "");
    if (await laneOf(kv, lineId, { chat, now: clock.now() }) === "reply") return;
    throw refusal(131047, "The recipient has not written within the last 24 hours: send a template.");
  };
}

/** Returns a `SafeFetch` that delivers the requests of webhooks as the faults say. */
export function withEmulatedDelivery(safeFetch: SafeFetch, { take }: Emulation, clock: Clock): SafeFetch {
  async function deliver(request: SafeRequest, phone: string): Promise<SafeResponse> {
    const lateMs = take(phone, "webhook_late");
    if (lateMs !== null) await sleep(clock, lateMs, request.signal);
    if (take(phone, "webhook_lost")) return lost(request.url);
    const digest = take(phone, "bad_signature") && `sha256=${"0".repeat(64)}`;
    const headers = { ...request.headers, ...(digest ? { "x-hub-signature-256": digest } : {}) };
    const response = await safeFetch.fetch({ ...request, headers });
    if (!take(phone, "webhook_twice")) return response;
    await response.discard();
    return await safeFetch.fetch({ ...request, headers });
  }
  return {
    ...safeFetch,
    fetch(request) {
      const phone = request.headers?.["x-hub-signature-256"] ? phoneOf(request.body as Uint8Array) : null;
      return phone === null ? safeFetch.fetch(request) : deliver(request, phone);
    },
  };
}

function phoneOf(body: Uint8Array): string {
  return JSON.parse(new TextDecoder().decode(body)).entry[0].changes[0].value.metadata.phone_number_id;
}

/** The answer to a request that did not arrive, although its sender thinks so. */
function lost(url: string): SafeResponse {
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({ start: (controller) => controller.close() });
  return { status: 200, headers: new ResponseHeaders(), url: new URL(url), body, discard: () => Promise.resolve() };
}
