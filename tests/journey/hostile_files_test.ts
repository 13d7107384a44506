/**
 * A file of each format that would cost a careless reader minutes or gigabytes, sent, received and shown as a link's
 * picture. `scripts/checks/hostile_files.ts` does the same with hundreds, and measures.
 */
import assert from "node:assert/strict";
import { hostileFiles } from "../support/hostile_corpus.ts";
import { openStage } from "../support/stage.ts";
import { startPictures } from "../support/pictures.ts";
import { until } from "../support/until.ts";

/** A PNG and a JPEG: what a preview may show. */
const SHOWN = [1, 2];
const LINE = "4915560000061";
const CUSTOMER = "4917560000061";

Deno.test("hostile files are sent, received and left out of previews, and the gateway goes on", async () => {
  const files = [...hostileFiles({ count: 9, seed: 4 })];
  const pictures = await startPictures(files);
  const stage = await openStage();
  try {
    await stage.addPhone(CUSTOMER);
    const line = await stage.linkLine(LINE);
    const sent: string[] = [];
    for (const { name, mimetype, bytes } of files) {
      const form = new FormData();
      form.set("to", CUSTOMER);
      form.set("file", new Blob([new Uint8Array(bytes)], { type: mimetype }), name);
      const answer = await stage.request("POST", "/messages/send/file", { body: form });
      assert.equal(answer.status, 202, name);
      sent.push((await answer.json()).messageId);
      const file = bytes.toString("base64");
      const kind = mimetype.startsWith("image/") ? "image" : "document";
      const received = { to: LINE, file, filename: name, mimetype, kind };
      await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, received);
    }
    for (const i of SHOWN) sent.push(await stage.sendText(line, CUSTOMER, `see ${pictures.url}/page/${i}`));

    for (const id of sent) await stage.status(id, "sent");
    const received = await until(async () => {
      const events = (await stage.events(line)).filter(({ event }) => event === "message.received");
      return events.length === files.length ? events : null;
    }, "every file to be received");
    assert.deepEqual(received.map(({ data }) => data.media.size), files.map(({ bytes }) => bytes.length));
    await stage.end();
  } catch (error) {
    await stage.abandon();
    throw error;
  } finally {
    pictures.close();
  }
});
