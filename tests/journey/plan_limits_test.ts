/** What a plan holds back, changed by commands beside the gateway, through days that pass at once, to the account's end. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { startGatewayHere } from "../support/gateway_here.ts";
import { runCommand } from "../support/gateway_process.ts";
import { LeapClock } from "../support/leap_clock.ts";
import { openStageWith, withStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915200000091";
const DAY_MS = 24 * 60 * 60_000;
/** Of the first week of a line. */
const WARM_UP = 10;

const numbers = Array.from({ length: WARM_UP + 2 }, (_, i) => `49170000009${String(i).padStart(2, "0")}`);

Deno.test("new chats, warm-up and typing follow the plan, history ends, and a deleted account unlinks", async () => {
  const clock = new LeapClock();
  const options = { plan: { delayMinMs: 0, delayMaxMs: 0 }, env: { PALOMA_HISTORY_DAYS: "1" } };
  await withStage(() => openStageWith((env) => startGatewayHere(env, { clock }), options), async (stage) => {
    const { api, control } = stage;
    const line = await stage.linkLine(LINE);
    for (const number of numbers) await stage.addPhone(number);
    const plan = (...args: string[]) => runCommand(["plan", "set", "staged", ...args], stage.env);
    const waits = async () => (await stage.queue(line)).map(({ to, waitsFor }: Json) => [to, waitsFor?.kind]);
    const isWaiting = (to: string) =>
      until(
        async () => (await waits()).some((one) => one.join() === `${to},new_chats`),
        `the message to ${to} to wait for new chats`,
      );
    const arrives = (to: string) => stage.arrival(to, () => true);

    // New chats: the second waits, and leaves soon after the plan allows it.
    await plan("--new-chats-daily", "1");
    // Nothing waits by the plan yet: what is accepted counts from when the gateway knows it.
    await until(async () => (await api.call("GET", "/account")).data.plan.newChatsDaily === 1, "the plan to be known");
    const [first, second, ...others] = numbers as [string, string, ...string[]];
    await stage.sendText(line, first, "the only new chat of today");
    await arrives(first);
    await stage.sendText(line, second, "one too many");
    await isWaiting(second);
    await plan("--new-chats-daily", "none", "--warm-up");
    await arrives(second);

    // Warm-up: ten a day in the first week, the others tomorrow; who is known already is answered.
    const late = others.slice(WARM_UP - 2);
    // They may wait for two days.
    const patient = { sessionId: line.sessionId, text: "hello", ttl: 2 * DAY_MS / 1000 };
    for (const to of others) await api.call("POST", "/messages/send/text", { ...patient, to });
    for (const to of others.slice(0, WARM_UP - 2)) await arrives(to);
    for (const to of late) await isWaiting(to);
    await stage.sendText(line, first, "known already");
    await stage.arrival(first, ({ text }) => text === "known already");
    clock.leap(DAY_MS);
    await stage.sessionStatus(line, "connected");
    for (const to of late) await arrives(to);

    // Typing.
    await plan("--typing", "1s", "--no-warm-up");
    await until(async () => (await api.call("GET", "/account")).data.plan.typingMs === 1_000, "the plan to be known");
    await stage.sendText(line, second, "typed");
    await stage.arrival(second, ({ text }) => text === "typed");
    const states = stage.network.phone(second)!.chatStates().map(({ state }) => state);
    assert.ok(states.includes("typing"), `${second} saw ${states}`);

    // Retention: what is older than a day goes.
    clock.leap(3 * DAY_MS);
    await until(
      async () => (await api.call("GET", "/messages/history")).pagination.total === 0,
      "the history to be swept",
    );

    // The account goes, and the line with it: the phone has no such device any more.
    await runCommand(["account", "delete", stage.accountId], stage.env);
    await until(async () => {
      const { devices } = await control.call("GET", `/phones/${LINE}`);
      return devices.length === 0;
    }, "the line to be unlinked");
    assert.equal((await stage.request("GET", "/sessions")).status, 401);
    await until(
      async () => JSON.parse(await runCommand(["account", "list", "--json"], stage.env)).length === 0,
      "the account to go",
    );
  });
});
