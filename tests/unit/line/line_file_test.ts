import assert from "node:assert/strict";
import { type Exported, exportedOf, openLineFile, sealLineFile, TransferError } from "../../../src/line/line_file.ts";
import type { MovedMessage } from "../../../src/line/moved_queue.ts";
import { systemRandom } from "../../../src/runtime.ts";

const PASSPHRASE = "correct horse battery";

const message = {
  id: "msg_01kf0rdw8cwdndtcf8fe475qqx",
  jobId: "job_01kf0rdw8cwdndtcf8fe475qqx",
  accountId: "acc_1",
  sessionId: "ses_1",
  networkId: "3EB0C8712CC1E53869085F",
  position: 1,
  priority: "normal",
  sendAt: null,
  historyNumber: 1,
  to: "447700900123",
  content: { kind: "text", text: "hello" },
  bulkId: null,
  status: "queued",
  attempts: 0,
  error: null,
  createdAt: 1,
  expiresAt: 2,
  sentAt: null,
  deliveredAt: null,
  readAt: null,
} as MovedMessage["message"];

const line: Exported = {
  id: "abc",
  name: "Support line",
  phone: "447700900001",
  restriction: { kind: "reachout", until: null },
  proxy: "socks5://user:password@proxy.example:1080",
  pacing: { lastDepartureAt: 1, nextDepartureAt: 2 },
  isQueuePaused: false,
  link: "W10=",
  queue: [{ message, file: null }],
};

const read = (changed: object) => exportedOf(JSON.parse(JSON.stringify({ ...line, ...changed })));
const withMessage = (changed: object) => ({ queue: [{ message: { ...message, ...changed }, file: null }] });

Deno.test("a file holds the line that was put into it", () => {
  assert.deepEqual(openLineFile(sealLineFile(line, PASSPHRASE, systemRandom), PASSPHRASE, systemRandom), line);
});

Deno.test("a message may wait for a file that is not fetched yet", () => {
  const file = { url: "https://files.example/1042.pdf" };
  const content = { kind: "document", file, filename: "1042.pdf", mimetype: null, caption: null };
  assert.equal(read(withMessage({ content })).queue.length, 1);
});

const REFUSED: [what: string, change: object, why: RegExp][] = [
  ["a restriction that is none", { restriction: "for ever" }, /restriction/],
  ["a restriction until nonsense", { restriction: { kind: "x", until: "tomorrow" } }, /restriction.until/],
  ["a date that no calendar has", { restriction: { kind: "x", until: 9e15 } }, /restriction.until/],
  ["a name of ten million characters", { name: "x".repeat(10_000_000) }, /name/],
  ["no name", { name: undefined }, /name/],
  ["a number that is none", { phone: "<script>" }, /phone/],
  ["a proxy that is none", { proxy: "file:///etc/passwd" }, /proxy/],
  ["pacing without times", { pacing: {} }, /pacing/],
  ["a link that is no base64", { link: "***" }, /link/],
  ["a queue that is none", { queue: {} }, /queue/],
  ["a message without an id", withMessage({ id: "../../etc" }), /queue.0.message.id/],
  ["a message of an unknown kind", withMessage({ content: { kind: "missile" } }), /queue.0.message: must be a message/],
  ["a message without content", withMessage({ content: null }), /queue.0.message: must be a message/],
  ["a text of ten million characters", withMessage({ content: { kind: "text", text: "x".repeat(1e7) } }), /queue.0/],
  ["an expiry that is a text", withMessage({ expiresAt: "later" }), /expiresAt/],
];

for (const [what, change, why] of REFUSED) {
  Deno.test(`a file with ${what} is refused in one sentence`, () => {
    assert.throws(() => read(change), (error) => {
      assert.ok(error instanceof TransferError, String(error));
      assert.match(error.message, why);
      assert.ok(error.message.length < 200 && !error.message.includes("\n"), error.message);
      return true;
    });
  });
}
