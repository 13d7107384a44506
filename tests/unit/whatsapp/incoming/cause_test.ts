/** Work is told by what caused it, through all that is awaited. */
import assert from "node:assert/strict";
import { makeCause } from "../../../../src/whatsapp/baileys/incoming/cause.ts";

Deno.test("what a frame led to is marked, also after it waited for something", async () => {
  const cause = makeCause();
  assert.equal(cause.isFrame(), false);
  const later = Promise.withResolvers<void>();
  const marked = cause.frame(async () => {
    await later.promise;
    return cause.isFrame();
  });
  cause.own(() => later.resolve());
  assert.equal(await marked, true);
  assert.equal(cause.isFrame(), false);
});

Deno.test("the gateway's own work is its own within a frame too, and the frame goes on as one", async () => {
  const cause = makeCause();
  await cause.frame(async () => {
    assert.equal(await cause.own(() => Promise.resolve().then(() => cause.isFrame())), false);
    assert.equal(cause.isFrame(), true);
  });
});

Deno.test("the frames of one line mark nothing of another", () => {
  const other = makeCause();
  assert.equal(makeCause().frame(() => other.isFrame()), false);
});
