/**
 * A line whose network goes silent without a word: the socket stays open and nothing comes. In real time, because the
 * library's own timers are part of what has to notice.
 */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import { onStage } from "../support/stage.ts";

/** A half-open socket is noticed within this time. */
const NOTICED_WITHIN_MS = 60_000;
/** What a slow and busy machine adds to it. */
const LATE_MS = 30_000;
/** It lasts until it is lifted. */
const SILENT_SECONDS = 3_600;
const ANA = "4917000000001";

onStage(
  "silence: a half-open socket is noticed within 60 s, idle or sending, and nothing is lost or doubled",
  async (stage) => {
    const { control } = stage;
    await stage.addPhone(ANA);
    const numbers = ["4915100000001", "4915100000002", "4915100000003"];
    const [idle, sending, other] = await Promise.all(numbers.map((number) => stage.linkLine(number)));
    const lost = (line: typeof idle) => stage.event(line!, ({ event }) => event === "session.disconnected");

    await stage.status(await stage.sendText(sending!, ANA, "the first of this chat"), "sent");

    const silentFrom = systemClock.now();
    for (const { number } of [idle!, sending!]) {
      await control.call("POST", "/faults", { line: number, kind: "silence", seconds: SILENT_SECONDS });
    }
    const messageId = await stage.sendText(sending!, ANA, "sent into the silence");
    await control.call("POST", `/phones/${ANA}/messages`, { to: idle!.number, text: "said into the silence" });

    const noticed = await Promise.all([lost(idle), lost(sending)]);
    for (const { createdAt } of noticed) {
      const noticedMs = Date.parse(createdAt) - silentFrom;
      assert.ok(noticedMs <= NOTICED_WITHIN_MS + LATE_MS, `noticed after ${noticedMs} ms`);
    }
    assert.equal(noticed[0].data.reason, "The connection to the network was lost.");
    assert.equal(noticed[1].data.reason, "The network did not answer.");
    const [waiting] = await stage.queue(sending!);
    assert.deepEqual([waiting.messageId, waiting.status, waiting.estimatedDeparture], [messageId, "queued", null]);
    assert.ok(
      (await stage.logOf(idle!)).some(({ msg, kind }) => msg === "a line's connection ended" && kind === "lost"),
    );

    // The other line sends all the while, and its status never changed.
    await stage.status(await stage.sendText(other!, ANA, "the other line lives on"), "sent");
    assert.ok((await stage.events(other!)).every(({ event }) => event !== "session.disconnected"));

    for (const { number } of [idle!, sending!]) await control.call("DELETE", `/faults/${number}`);
    for (const line of [idle!, sending!]) await stage.sessionStatus(line, "connected");
    await stage.status(messageId, "sent");
    const copies = (await stage.inbox(ANA)).filter(({ text }) => text === "sent into the silence");
    assert.deepEqual(copies.map((message) => message.copies), [1]);
    const isMessage = ({ event }: Json) => event === "message.received";
    await stage.event(idle!, isMessage);
    const heard = (await stage.events(idle!)).filter(isMessage);
    assert.deepEqual(heard.map(({ data }) => data.text), ["said into the silence"]);
  },
);
