/** The contract of `src/webhook/target.ts` as tests over any kind of target. */
import assert from "node:assert/strict";
import { Problem } from "../../src/errors.ts";
import type { LoggedEvent } from "../../src/event/event.ts";
import { palomaFormat } from "../../src/webhook/format.ts";
import { signatureHeaders } from "../../src/webhook/signature.ts";
import { SealError } from "../../src/store/seal.ts";
import { type AttemptOutcome, type Handover, RETRY_AFTER_MAX_MS, type Target } from "../../src/webhook/target.ts";

/** What the other side does with what arrives. */
export type Reaction = "accepts" | "refuses" | "is busy" | "is gone" | "refers" | "hangs";

export interface TargetKind {
  name: string;
  open(): Promise<TargetWorld>;
}

interface TargetWorld extends AsyncDisposable {
  target: Target;
  /** Where it is delivered. */
  url: string;
  /** Where nobody is. */
  deserted: string;
  /** Where nothing may be delivered. */
  forbidden: readonly string[];
  /** The token that the other side expects in the handshake. */
  token: string;
  react(reaction: Reaction): void;
  arrived(): readonly { body: string; headers: Readonly<Record<string, unknown>> }[];
  /** Lets time pass, and resolves to what the attempt came to. */
  after(ms: number, outcome: Promise<AttemptOutcome>): Promise<AttemptOutcome>;
}

/** Longer than any attempt may take. */
const IN_TIME_MS = 15_000;
const EVENT: LoggedEvent = {
  id: "evt_1",
  event: "webhook.test",
  accountId: "acc_1",
  sessionId: "ses_1",
  sessionName: "Front desk",
  data: { webhookId: "whk_1", at: "2026-01-01T00:00:00.000Z" },
  createdAt: 0,
};
const SECRETS = ["whsec_bm9ib2R5IGtub3dzIHRoaXMgb25l"];

export function targetContract({ name, open }: TargetKind): void {
  const test = (title: string, run: (world: TargetWorld, handover: Handover) => Promise<void>) =>
    Deno.test(`${name}: ${title}`, async () => {
      await using world = await open();
      await run(world, {
        url: world.url,
        open: () => ({ secrets: SECRETS, headers: { "x-of-its-own": "kept" } }),
        event: EVENT,
        body: await palomaFormat.bodyOf(EVENT),
        format: palomaFormat,
        signal: new AbortController().signal,
      });
    });

  test("what arrives is the body as given, signed, with the webhook's own headers", async (world, handover) => {
    const outcome = await world.target.attempt(handover);
    assert.equal(outcome.kind, "delivered");
    const [{ body, headers }] = world.arrived() as [ReturnType<TargetWorld["arrived"]>[number]];
    assert.equal(body, handover.body);
    const at = Number(headers["webhook-timestamp"]) * 1000;
    const signed = signatureHeaders({ id: EVENT.id, at, body: new TextEncoder().encode(body), secrets: SECRETS });
    for (const [header, value] of Object.entries(signed)) assert.equal(headers[header], value);
    assert.equal(headers["x-of-its-own"], "kept");
  });

  test("only an acceptance is delivered, and a referral is not followed", async (world, handover) => {
    for (const [reaction, kind] of [["refuses", "failed"], ["is gone", "gone"], ["refers", "failed"]] as const) {
      world.react(reaction);
      const outcome = await world.target.attempt(handover);
      assert.equal(outcome.kind, kind, reaction);
      assert.ok("attempt" in outcome && outcome.attempt.error);
    }
    assert.equal(world.arrived().length, 3);
  });

  test("who is busy is heard, up to a limit", async (world, handover) => {
    world.react("is busy");
    const outcome = await world.target.attempt(handover);
    assert.ok(outcome.kind === "failed" && outcome.retryAfterMs !== null);
    assert.ok(outcome.retryAfterMs > 0 && outcome.retryAfterMs <= RETRY_AFTER_MAX_MS);
  });

  test("whoever hangs, and where nobody is, ends as failed in time", async (world, handover) => {
    world.react("hangs");
    const hung = await world.after(IN_TIME_MS, world.target.attempt(handover));
    const deserted = await world.after(IN_TIME_MS, world.target.attempt({ ...handover, url: world.deserted }));
    assert.deepEqual([hung.kind, deserted.kind], ["failed", "failed"]);
  });

  test("an abort stops the attempt", async (world, handover) => {
    world.react("hangs");
    const stopping = new AbortController();
    const attempt = world.target.attempt({ ...handover, signal: stopping.signal });
    stopping.abort();
    assert.deepEqual(await attempt, { kind: "stopped" });
  });

  test("secrets that cannot be unsealed fail the attempt, and nothing arrives", async (world, handover) => {
    const open = () => {
      throw new SealError("sealed by another key");
    };
    const outcome = await world.target.attempt({ ...handover, open });
    assert.equal(outcome.kind, "failed");
    assert.equal(world.arrived().length, 0);
  });

  test("an attempt at a forbidden address fails, and a look at one is refused", async (world, handover) => {
    await world.target.vet(world.url);
    for (const url of world.forbidden) {
      assert.equal((await world.target.attempt({ ...handover, url })).kind, "failed", url);
      await assert.rejects(world.target.vet(url), refusedAtUrl, url);
    }
    assert.equal(world.arrived().length, 0);
  });

  test("whoever does not prove that it expects events is refused", async ({ target, url, deserted, token, react }) => {
    await target.verify(url, token);
    await assert.rejects(target.verify(url, "of somebody else"), refusedAtUrl);
    await assert.rejects(target.verify(deserted, token), refusedAtUrl);
    react("refuses");
    await assert.rejects(target.verify(url, token), refusedAtUrl);
  });
}

function refusedAtUrl(error: unknown): boolean {
  return error instanceof Problem && error.code === "validation_failed";
}
