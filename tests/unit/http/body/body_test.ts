import assert from "node:assert/strict";
import { Problem } from "../../../../src/errors.ts";
import { chunksOf, discardRest, parseJson, readBytes } from "../../../../src/http/body/body.ts";
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

Deno.test("whoever reads a body that is all there leaves the thread to others in between", async () => {
  let turns = 0;
  const other = setInterval(() => turns++, 0);
  let read = 0;
  for await (const _ of chunksOf(requestOf(Array(200).fill("x")))) {
    const busyUntil = performance.now() + 1;
    while (performance.now() < busyUntil);
    read++;
  }
  clearInterval(other);
  assert.equal(read, 200);
  assert.ok(turns > 50, `${turns}`);
});

Deno.test("a body is copied as it arrives, so that the pieces of one in tiny chunks need no memory", async () => {
  const piece = new Uint8Array(1);
  let left = 5_000;
  const body = new ReadableStream({
    pull(controller) {
      // A list of the pieces would hold this one many times.
      piece[0] = left % 251;
      if (left-- > 0) controller.enqueue(piece);
      else controller.close();
    },
  }, { highWaterMark: 0 });
  const read = await readBytes(new Request("http://gateway.test/", { method: "POST", body }), { maxBytes: 5_000 });
  assert.deepEqual(read, Uint8Array.from({ length: 5_000 }, (_, i) => (5_000 - i) % 251));
});

Deno.test("there is nothing left of a body that was read whole, nor of none", async () => {
  const { clock } = testRuntime();
  const request = requestOf(["all"]);
  await request.arrayBuffer();
  assert.equal(await discardRest(request, clock), true);
  assert.equal(await discardRest(new Request("http://gateway.test/", { method: "POST" }), clock), true);
});

Deno.test("a body in tiny chunks is given up, one in small chunks is not", async () => {
  const { clock } = testRuntime();
  for (const [bytes, isRead] of [[1, false], [1_000, true]] as const) {
    let chunks = 0;
    const body = new ReadableStream({
      pull(controller) {
        if (++chunks <= 30_000) controller.enqueue(new Uint8Array(bytes));
        else controller.close();
      },
    });
    assert.equal(await discardRest(new Request("http://gateway.test/", { method: "POST", body }), clock), isRead);
    assert.equal(chunks > 12_000, isRead, `${chunks} chunks of ${bytes} were read`);
  }
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

Deno.test("JSON is parsed only where its depth, its values and the members of its objects are bounded", () => {
  const parse = (json: string) => parseJson(new TextEncoder().encode(json));
  const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
  const list = (values: number) => `[${"{},".repeat(values - 1)}{}]`;
  const object = (members: number) => `{${Array.from({ length: members }, (_, i) => `"k${i}":[]`).join(",")}}`;
  for (const json of [nested(32), list(500_000), object(1_000), `[${object(1_000)},${object(1_000)}]`]) {
    assert.deepEqual(parse(json), JSON.parse(json));
  }
  // Neither ends a string, nor opens or separates anything.
  const strange = JSON.stringify({ '"': `${"[".repeat(50)}\\"${",".repeat(2_000)}{`, "\\": "\\" });
  assert.deepEqual(parse(strange), JSON.parse(strange));
  for (
    const [json, message] of Object.entries({
      [nested(33)]: /deeper than 32 levels/,
      ["[".repeat(100_000)]: /deeper than 32 levels/,
      [list(500_001)]: /more than 500000 values/,
      [object(1_001)]: /more than 1000 members/,
    })
  ) {
    assert.throws(() => parse(json), (error) => error instanceof Problem && message.test(error.message));
  }
  for (const json of ["", "]", '{"a":"', '"\\', "{]}"]) {
    assert.throws(() => parse(json), (error) => error instanceof Problem && error.code === "malformed_json");
  }
});
