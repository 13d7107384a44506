/** A client sends many texts through connections that break, while the gateway is killed; judged at the phone. */
import assert from "node:assert/strict";
import { startDroppingRelay } from "../../tests/support/dropping_relay.ts";
import type { Stage } from "../../tests/support/stage.ts";
import { until } from "../../tests/support/until.ts";

const LINE = "447700900001";
const READER = "447700900123";
/** One in so many requests or answers is lost. */
const LOST_ONE_IN = 20;

export interface Sending {
  /** How many texts, `number 0` and up. */
  sends: number;
  /**
   * Starts a program on the client: BASE_URL, API_KEY, TO and SENDS in its environment. It prints a line for each send
   * that was accepted, and ends with 0.
   */
  spawn(env: Record<string, string>): Deno.ChildProcess;
}

/** Throws unless each text arrives once; resolves to how many requests and answers were lost on the way. */
export async function eachOnce(
  stage: Stage,
  { sends, spawn }: Sending,
): Promise<{ requests: number; answers: number }> {
  const line = await stage.linkLine(LINE);
  await stage.addPhone(READER);
  const { port, hostname } = new URL(stage.gateway.baseUrl);
  await using relay = await startDroppingRelay(Number(port), LOST_ONE_IN);
  const sender = spawn({
    BASE_URL: `http://${hostname}:${relay.port}/v1`,
    API_KEY: stage.apiKey,
    TO: READER,
    SENDS: String(sends),
  });
  const complaint = new Response(sender.stderr).text();
  let accepted = 0;
  for await (const text of sender.stdout.pipeThrough(new TextDecoderStream())) {
    const before = accepted;
    accepted += text.split("\n").length - 1;
    if (before < sends / 2 && accepted >= sends / 2) {
      await stage.gateway.kill();
      await stage.gateway.start();
    }
  }
  const { code } = await sender.status;
  assert.equal(code, 0, await complaint);
  assert.equal(accepted, sends);
  await until(async () => (await stage.queue(line)).length === 0, "an empty queue");
  await until(async () => (await stage.inbox(READER)).length >= sends, "every message at the phone");
  const arrived = (await stage.inbox(READER)).map(({ text }) => text);
  assert.deepEqual(arrived.toSorted(), Array.from({ length: sends }, (_, i) => `number ${i}`).toSorted());
  const { requests, answers } = relay.dropped;
  assert.ok(Math.min(requests, answers) >= Math.floor(sends / LOST_ONE_IN / 2), `lost: ${requests}, ${answers}`);
  return { requests, answers };
}
