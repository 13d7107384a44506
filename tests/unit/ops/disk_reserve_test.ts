import assert from "node:assert/strict";
import { withFairWrites } from "../../../src/media/fair_shares.ts";
import { acceptedWithRoom, freeBytesOf, makeDiskReserve, writtenWithRoom } from "../../../src/ops/disk_reserve.ts";
import type { Accepted, SendCommand } from "../../../src/message/send_command.ts";
import { fakeMedia } from "../../support/fake_media.ts";
import { testRuntime } from "../../support/runtime.ts";

const MB = 1_000_000;

Deno.test("below the reserve sends are refused, and taken again within a second of there being room", async () => {
  const runtime = testRuntime();
  let free = 300 * MB;
  const reserve = makeDiskReserve({ folder: "/", minFreeBytes: 256 * MB, runtime, freeBytes: () => free });
  let taken = 0;
  const accept = acceptedWithRoom(() => {
    taken++;
    return Promise.resolve({} as Accepted);
  }, reserve);
  const send = () => accept({} as SendCommand);

  await send();
  free = 255 * MB;
  await runtime.clock.advance(1_000);
  assert.throws(send, { name: "StoreError", code: "full", message: /PALOMA_MIN_FREE_DISK/ });
  assert.throws(send, { code: "full" });
  assert.equal(runtime.lines.filter(({ level }) => level === 50).length, 1, "said once");
  free = 257 * MB;
  await runtime.clock.advance(1_000);
  await send();
  assert.equal(taken, 2);
});

Deno.test("a file that would leave less than twice the reserve is refused midway, leaves nothing behind, and stops no send", async () => {
  const runtime = testRuntime();
  const reserve = makeDiskReserve({ folder: "/", minFreeBytes: 256 * MB, runtime, freeBytes: () => 513 * MB });
  const kept = fakeMedia();
  const media = writtenWithRoom(withFairWrites(kept, runtime.clock), reserve);
  const write = (pieces: number) => {
    const content = ReadableStream.from(Array.from({ length: pieces }, () => new Uint8Array(0.4 * MB)));
    return media.write(content, { accountId: "acc_1", maxBytes: Infinity });
  };

  await assert.rejects(write(3), { name: "StoreError", code: "full", message: /PALOMA_MIN_FREE_DISK/ });
  assert.equal(kept.files.size, 0);
  media.assertPlace();
  reserve.assertRoom();
  await runtime.clock.advance(1_000);
  await write(2);
  assert.equal(kept.files.size, 1);
});

Deno.test("the system is asked once a second, however many sends there are", () => {
  const runtime = testRuntime();
  let asked = 0;
  const freeBytes = () => {
    asked++;
    return Infinity;
  };
  const reserve = makeDiskReserve({ folder: "/", minFreeBytes: 0, runtime, freeBytes });
  for (let i = 0; i < 1_000; i++) reserve.assertRoom();
  assert.equal(asked, 1);
});

Deno.test("the free bytes of a folder are the system's", () => {
  assert.ok(freeBytesOf(".") > 0);
});
