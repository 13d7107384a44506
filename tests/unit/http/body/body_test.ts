import assert from "node:assert/strict";
import { chunksOf, discardRest } from "../../../../src/http/body/body.ts";
import { testRuntime } from "../../../support/runtime.ts";

const REST_MS = 5_000;

function requestOf(chunks: AsyncIterable<string> | Iterable<string>): Request {
  const body = ReadableStream.from(chunks).pipeThrough(new TextEncoderStream());
  return new Request("http://gateway.test/", { method: "POST", body });
}

Deno.test("what is left of a body after its reader has stopped is read to its end", async () => {
  const read: string[] = [];
  function* chunks() {
    for (const chunk of ["one", "two", "three"]) {
      read.push(chunk);
      yield chunk;
    }
  }
  const request = requestOf(chunks());
  for await (const chunk of chunksOf(request)) {
    assert.equal(new TextDecoder().decode(chunk), "one");
    break;
  }
  assert.equal(await discardRest(request, testRuntime().clock), true);
  assert.deepEqual(read, ["one", "two", "three"]);
});

Deno.test("there is nothing left of a body that was read whole, nor of none", async () => {
  const { clock } = testRuntime();
  const request = requestOf(["all"]);
  await request.arrayBuffer();
  assert.equal(await discardRest(request, clock), true);
  assert.equal(await discardRest(new Request("http://gateway.test/", { method: "POST" }), clock), true);
});

Deno.test("a body that does not end is given up, and its sender hears of it", async () => {
  const { clock } = testRuntime();
  let cancelled = false;
  const body = new ReadableStream({
    pull: () => new Promise(() => {}),
    cancel: () => void (cancelled = true),
  });
  const discarded = discardRest(new Request("http://gateway.test/", { method: "POST", body }), clock);
  await clock.advance(REST_MS);
  assert.equal(await discarded, false);
  assert.equal(cancelled, true);
});

Deno.test("a body that breaks off is no failure of ours", async () => {
  const request = new Request("http://gateway.test/", {
    method: "POST",
    body: new ReadableStream({ pull: (controller) => controller.error(new Error("reset by peer")) }),
  });
  assert.equal(await discardRest(request, testRuntime().clock), false);
});
