/** Files of several accounts are written in turn, a chunk at a time. */
import assert from "node:assert/strict";
import type { MediaStore } from "../../../src/media/store.ts";
import { withFairWrites } from "../../../src/media/fair_shares.ts";
import { fakeMedia } from "../../support/fake_media.ts";
import { testRuntime } from "../../support/runtime.ts";

/** A store whose chunks each take 10 ms to write, and what it wrote in which order. */
function slowStore() {
  const { clock } = testRuntime();
  const written: string[] = [];
  const media = fakeMedia();
  async function* slowly(content: ReadableStream<Uint8Array>) {
    for await (const chunk of content) {
      written.push(new TextDecoder().decode(chunk));
      await new Promise<void>((resolve) => clock.after(10, resolve));
      yield chunk;
    }
  }
  const slow: MediaStore = {
    ...media,
    write: (content, maxBytes) => media.write(ReadableStream.from(slowly(content)), maxBytes),
  };
  return { clock, written, shared: withFairWrites(slow, clock) };
}

const file = (...chunks: string[]) => ReadableStream.from(chunks.map((chunk) => new TextEncoder().encode(chunk)));

Deno.test("a file waits for a chunk of another account's files, not for their flood", async () => {
  const { clock, written, shared } = slowStore();
  const of = (accountId: string) => ({ accountId, maxBytes: 100 });
  const flood = Array.from({ length: 10 }, (_, i) => shared.write(file(`flood ${i}`, "more"), of("loud")));
  const one = shared.write(file("quiet"), of("still"));
  await clock.advance(0);
  assert.equal(shared.waiting(), 9, "all but the one that is written, and another account's");
  for (let passed = 0; !written.includes("quiet"); passed += 10) {
    assert.ok(passed < 1_000, "it never came");
    await clock.advance(10);
  }
  assert.ok(written.length <= 3, `written before it: ${written}`);
  for (let i = 0; i < 100; i++) await clock.advance(10);
  assert.equal((await one).size, 5);
  for (const { size } of await Promise.all(flood)) assert.equal(size, 11);
});

Deno.test("an account's chunks rest for as long as they took", async () => {
  const { clock, written, shared } = slowStore();
  const writing = shared.write(file("1", "2", "3"), { accountId: "loud", maxBytes: 100 });
  const seen: number[] = [];
  for (let i = 0; i < 6; i++) {
    await clock.advance(i === 0 ? 0 : 10);
    seen.push(written.length);
  }
  assert.deepEqual(seen, [1, 1, 2, 2, 3, 3]);
  for (let i = 0; i < 10; i++) await clock.advance(10);
  assert.equal((await writing).size, 3);
});

Deno.test("content is cancelled when the store fails before it has read any", async () => {
  const shared = withFairWrites(
    { ...fakeMedia(), write: () => Promise.reject(new Error("no place")) },
    testRuntime().clock,
  );
  let cancelled: unknown = null;
  const content = new ReadableStream<Uint8Array>({ cancel: (reason) => void (cancelled = reason) });
  await assert.rejects(shared.write(content, { accountId: "acc_1", maxBytes: 1 }), /no place/);
  assert.match(String(cancelled), /no place/);
});
