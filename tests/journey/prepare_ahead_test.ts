/** Files get ready while the pause before them runs: slow uploads and downloads leave a line's pauses as they are. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { listenOn } from "../../src/base/listening.ts";
import type { Json } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import { connectionsOf } from "../support/closing.ts";
import { accepted, answerOf, post } from "../support/api_calls.ts";
import { arrivals } from "../support/arrivals.ts";
import { noFileLeft } from "../support/media_folder.ts";
import { sampleFile } from "../support/sample_files.ts";
import { type LinkedLine, openStage, type Stage, withStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915557100001";
const CUSTOMER = "4917557100001";
/** What gets ready takes longer than the bounds are apart: within the departure it would break them each time. */
const BOUNDS = { delayMinMs: 1_500, delayMaxMs: 2_500 };
const READY_SECONDS = 1.1;

Deno.test("slow uploads and downloads end before the pause does, and leave it as it is", () =>
  withStage(() => openStage({ plan: BOUNDS }), async (stage) => {
    await using host = await openSlowHost(READY_SECONDS);
    await stage.addPhone(CUSTOMER);
    const line = await stage.linkLine(LINE);
    const uploads = uploadsOf(stage);
    await stage.sendText(line, CUSTOMER, "the first leaves at once");
    await slowUploads(stage, { seconds: READY_SECONDS, count: 4 });
    const files: string[] = [];
    for (let i = 0; i < 3; i++) files.push(await sendFile(stage, line));
    const messages = [{ to: CUSTOMER, fileUrl: host.url }, { to: CUSTOMER, text: "the last" }];
    const json = { sessionId: line.sessionId, messages };
    files.push((await accepted(post(stage, "/messages/send/bulk", { json }))).messages[0].messageId);
    const inbox = await arrivals(stage, CUSTOMER, { count: 6 });
    assert.deepEqual(inbox.map(({ type }) => type), [
      "extendedTextMessage",
      ...Array(4).fill("imageMessage"),
      "extendedTextMessage",
    ]);
    const times = (await wireOf(stage)).map(({ time }) => time);
    const gaps = times.slice(1).map((time, i) => time - times[i]!);
    assert.equal(gaps.length, 5);
    for (const gap of gaps) assert.ok(gap >= BOUNDS.delayMinMs, `gaps: ${gaps}`);
    assert.equal(uploads.length, files.length);
    for (const [i, messageId] of files.entries()) {
      const { life } = (await stage.api.call("GET", `/messages/${messageId}`)).data;
      const left = Date.parse(life.find(({ status }: Json) => status === "processing").at);
      const readyAt = uploads[i]! + READY_SECONDS * 1000;
      assert.ok(left >= readyAt, `file ${i} left ${readyAt - left} ms before its upload ended`);
    }
    await noFileLeft(stage);
  }));

Deno.test("a file that is cancelled, or whose gateway is killed, while it is uploaded", (t) => {
  const bounds = { delayMinMs: 3_000, delayMaxMs: 4_000 };
  return withStage(() => openStage({ plan: bounds }), async (stage) => {
    await stage.addPhone(CUSTOMER);
    const line = await stage.linkLine(LINE);
    const { media } = stage.network;
    const first = await stage.sendText(line, CUSTOMER, "the first leaves at once");
    await stage.status(first, "sent");
    // The phone has uploaded what it welcomed the line with.
    let uploads = media.paths().length;
    /** A file whose upload the host has, and does not answer for a long time. */
    const sendStuckFile = async (): Promise<string> => {
      await slowUploads(stage, { seconds: 600, count: 1 });
      const messageId = await sendFile(stage, line);
      uploads++;
      await until(() => media.paths().length === uploads, "the upload");
      assert.equal((await stage.queue(line))[0].status, "queued");
      return messageId;
    };

    await t.step("cancelled, it never leaves, and the next one leaves in its time", async () => {
      const messageId = await sendStuckFile();
      const { status, body } = await answerOf(stage.request("DELETE", `/messages/${messageId}`));
      assert.deepEqual([status, body.data.error.code], [200, "cancelled"]);
      const next = await sendFile(stage, line);
      uploads++;
      await stage.status(next, "sent");
      const [before, after, ...more] = await wireOf(stage);
      assert.deepEqual(more, []);
      const gap = after.time - before.time;
      assert.ok(gap >= bounds.delayMinMs, `a gap of ${gap} ms`);
      await noFileLeft(stage);
    });

    await t.step("after a kill it is uploaded again and leaves once, no sooner than its pause allows", async () => {
      const messageId = await sendStuckFile();
      await stage.gateway.kill();
      await stage.gateway.start();
      await stage.status(messageId, "sent");
      assert.equal(media.paths().length, uploads + 1);
      const [, before, after, ...more] = await wireOf(stage);
      assert.deepEqual(more, []);
      assert.ok(after.time - before.time >= bounds.delayMinMs, `a gap of ${after.time - before.time} ms`);
      assert.deepEqual((await stage.inbox(CUSTOMER)).map(({ copies }) => copies), [1, 1, 1]);
      await noFileLeft(stage);
    });
  });
});

async function sendFile(stage: Stage, { sessionId }: LinkedLine): Promise<string> {
  const file = sampleFile("png").toString("base64");
  const json = { sessionId, to: CUSTOMER, file, filename: "paced.png" };
  return (await accepted(post(stage, "/messages/send/document", { json }))).messageId;
}

async function slowUploads(stage: Stage, slow: { seconds: number; count: number }): Promise<void> {
  await stage.control.call("POST", "/faults", { line: LINE, kind: "slow_upload", ...slow });
}

/** When the media host got each upload of the line, Unix ms; grows while it goes on. */
function uploadsOf({ network: { switchboard: { faults } } }: Stage): number[] {
  const begun: number[] = [];
  const take = faults.take.bind(faults);
  faults.take = (line, kind) => {
    if (line === LINE && kind === "slow_upload") begun.push(systemClock.now());
    return take(line, kind);
  };
  return begun;
}

/** What the line sent, as the server saw it. */
function wireOf(stage: Stage): Promise<Json[]> {
  return stage.control.call("GET", `/wire?line=${LINE}`);
}

/** A host that takes its time over a picture. */
async function openSlowHost(seconds: number) {
  const server = createServer((_request, response) => {
    systemClock.after(seconds * 1000, () => response.end(sampleFile("png")));
  });
  const { close } = connectionsOf(server);
  const port = await listenOn(server);
  return { url: `http://127.0.0.1:${port}/slow.png`, [Symbol.asyncDispose]: close };
}
