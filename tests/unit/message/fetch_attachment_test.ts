import assert from "node:assert/strict";
import { EgressError } from "../../../src/egress/egress_error.ts";
import type { SafeFetch, SafeRequest, SafeResponse } from "../../../src/egress/safe_fetch.ts";
import type { Message } from "../../../src/message/message.ts";
import { makeFetchAttachment } from "../../../src/message/fetch_attachment.ts";
import { remoteContent } from "../../../src/message/kinds/file.ts";
import { mediaKeys } from "../../../src/media/rows.ts";
import { withFairWrites } from "../../../src/media/fair_shares.ts";
import { messageKeys } from "../../../src/message/rows.ts";
import { Change, StoreError } from "../../../src/store/kv.ts";
import { fakeMedia } from "../../support/fake_media.ts";
import { aSend, type SendWorld, withSendWorld } from "../../support/send_world.ts";

type Answer = EgressError | { status: number; headers?: Record<string, string>; body?: string };

/** A queued message with a `fileUrl`, and a network that answers as told. */
async function stage(world: SendWorld, url: string, answers: Answer[]) {
  const { kv, runtime } = world;
  const files = fakeMedia();
  const requests: SafeRequest[] = [];
  const dropped: { messageId: string; code: string; message: string }[] = [];
  const safeFetch: SafeFetch = {
    vet: () => Promise.resolve(),
    vetProxy: () => Promise.resolve(),
    proxy: () => Promise.reject(new Error("no proxies here")),
    fetch(request) {
      requests.push(request);
      const answer = answers[Math.min(requests.length, answers.length) - 1]!;
      if (answer instanceof EgressError) return Promise.reject(answer);
      const { status, headers = {}, body = "content" } = answer;
      const stream = new Blob([body]).stream();
      return Promise.resolve(
        { status, headers: new Headers(headers), body: stream, url: new URL(url) } as unknown as SafeResponse,
      );
    },
  };
  const fetchAttachment = makeFetchAttachment({
    kv,
    runtime,
    safeFetch,
    files: withFairWrites(files, runtime.clock),
    recorder: {
      drop: (messageId, error) => {
        dropped.push({ messageId, ...error });
        return Promise.resolve(null);
      },
    },
  });
  const content = remoteContent(url, { caption: "Look" });
  const accepted = await world.accept(aSend({ items: [{ to: "34600111222", content }] }));
  const message = () => kv.get<Message>(messageKeys.message(accepted.messages[0]!.id)).then((slot) => slot.value!);
  return { files, requests, dropped, fetchAttachment, message };
}

const NEVER = new AbortController().signal;

Deno.test("the file of an address is fetched, kept with its message, and named by the address", () =>
  withSendWorld(async (world) => {
    const s = await stage(world, "https://example.com/a/Photo%201.png?x=1", [{ status: 200 }]);
    await s.fetchAttachment(await s.message(), NEVER);
    const { content, status } = await s.message();
    assert.equal(status, "queued");
    assert.ok(content.kind === "image" && "fileId" in content.file);
    assert.deepEqual([content.filename, content.mimetype, content.caption, content.file.size], [
      "Photo 1.png",
      "image/png",
      "Look",
      7,
    ]);
    const row = await world.kv.get(mediaKeys.file(content.file.fileId));
    assert.equal((row.value as { filename: string }).filename, "Photo 1.png");
    assert.deepEqual([s.files.files.size, s.dropped.length], [1, 0]);
    assert.deepEqual(s.requests[0]!.schemes, ["https:", "http:"]);
  }));

Deno.test("an address that tells no kind is named by what the server says", () =>
  withSendWorld(async (world) => {
    const rows: [headers: Record<string, string>, filename: string, kind: string, mimetype: string][] = [
      [{ "content-type": "application/zip" }, "download.zip", "document", "application/zip"],
      [{ "content-type": "image/jpeg; q=1" }, "download.jpg", "image", "image/jpeg"],
      [{ "content-disposition": 'attachment; filename="clip.mp4"' }, "clip.mp4", "video", "video/mp4"],
      [{ "content-type": "application/x-odd" }, "download", "document", "application/x-odd"],
    ];
    for (const [headers, filename, kind, mimetype] of rows) {
      const s = await stage(world, "https://example.com/download", [{ status: 200, headers }]);
      await s.fetchAttachment(await s.message(), NEVER);
      const { content } = await s.message();
      assert.ok("filename" in content);
      assert.deepEqual([content.filename, content.kind, content.mimetype], [filename, kind, mimetype]);
    }
  }));

Deno.test("what may pass is tried three times, with pauses", () =>
  withSendWorld(async (world) => {
    const busy = { status: 503 };
    const s = await stage(world, "https://example.com/a.png", [busy, new EgressError("timeout", "too slow"), {
      status: 200,
    }]);
    const fetched = s.fetchAttachment(await s.message(), NEVER);
    await world.runtime.clock.advance(999);
    assert.equal(s.requests.length, 1);
    await world.runtime.clock.advance(1);
    assert.equal(s.requests.length, 2);
    await world.runtime.clock.advance(4_000);
    await fetched;
    assert.equal(s.requests.length, 3);
    assert.ok("fileId" in ((await s.message()).content as { file: object }).file);
  }));

Deno.test("a file that cannot be had ends the message with a reason", () =>
  withSendWorld(async (world) => {
    const rows: [answer: Answer, attempts: number, reason: RegExp][] = [
      [{ status: 404 }, 1, /answered 404/],
      [{ status: 500 }, 3, /answered 500/],
      [new EgressError("forbidden_address", "the host is not on the public internet"), 1, /public internet/],
      [new EgressError("unreachable", "nobody answers"), 3, /nobody answers/],
      [new EgressError("too_large", "too large"), 1, /larger than 100 MiB/],
    ];
    for (const [answer, attempts, reason] of rows) {
      const s = await stage(world, "https://example.com/a.png", [answer]);
      const fetched = s.fetchAttachment(await s.message(), NEVER);
      await world.runtime.clock.advance(10_000);
      await fetched;
      assert.equal(s.requests.length, attempts, String(reason));
      assert.equal(s.dropped.length, 1);
      assert.equal(s.dropped[0]!.code, "file_unavailable");
      assert.match(s.dropped[0]!.message, reason);
      assert.equal(s.files.files.size, 0);
    }
  }));

Deno.test("a store in trouble has the file fetched once, and kept when it is over", () =>
  withSendWorld(async (world) => {
    const s = await stage(world, "https://example.com/a.zip", [{ status: 200 }]);
    const message = await s.message();
    const { commit } = world.kv;
    let refusals = 0;
    world.kv.commit = (change) => {
      if (refusals++ < 3) throw new StoreError("full", "there is no space left");
      return commit.call(world.kv, change);
    };
    const fetched = s.fetchAttachment(message, NEVER);
    while (refusals <= 3) {
      await new Promise((resolve) => setTimeout(resolve));
      await world.runtime.clock.advance(1_000);
    }
    await fetched;
    const { content } = await s.message();
    assert.ok(content.kind === "document" && "fileId" in content.file);
    assert.deepEqual([s.requests.length, s.files.files.size], [1, 1]);
  }));

Deno.test("a message that is cancelled meanwhile leaves no file", () =>
  withSendWorld(async (world) => {
    const s = await stage(world, "https://example.com/a.png", [{ status: 200 }]);
    const message = await s.message();
    await world.kv.commit(new Change().set(messageKeys.message(message.id), { ...message, status: "failed" }));
    await s.fetchAttachment(message, NEVER);
    assert.deepEqual([s.requests.length, s.files.files.size, s.dropped.length], [1, 0, 0]);
  }));

Deno.test("a stop ends the attempts and says nothing of the message", () =>
  withSendWorld(async (world) => {
    const s = await stage(world, "https://example.com/a.png", [{ status: 503 }]);
    const stop = new AbortController();
    const fetched = s.fetchAttachment(await s.message(), stop.signal);
    await world.runtime.clock.advance(500);
    stop.abort();
    await fetched;
    assert.deepEqual([s.requests.length, s.dropped.length], [1, 0]);
    assert.equal((await s.message()).status, "queued");
  }));

Deno.test("a message without an address is left alone", () =>
  withSendWorld(async (world) => {
    const s = await stage(world, "https://example.com/a.png", [{ status: 200 }]);
    const message = await s.message();
    await s.fetchAttachment({ ...message, content: { kind: "text", text: "hi" } }, NEVER);
    assert.equal(s.requests.length, 0);
  }));
