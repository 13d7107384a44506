import assert from "node:assert/strict";
import type { BinaryNode } from "@whiskeysockets/baileys";
import { watchLiveness } from "../../../src/whatsapp/baileys/liveness.ts";
import { testRuntime } from "../../support/runtime.ts";

const stanza = (tag: string, content?: BinaryNode[]): BinaryNode => ({ tag, attrs: {}, content });
const preview = stanza("ib", [{ tag: "offline_preview", attrs: { count: "3" } }]);
const end = stanza("ib", [{ tag: "offline", attrs: { count: "3" } }]);

Deno.test("a line that is told of messages and gets none complains, though the network answers its pings", async () => {
  const { clock } = testRuntime();
  const signs = watchLiveness(clock);
  signs.frame(preview);
  for (let minute = 0; minute < 4; minute++) {
    await clock.advance(11_000);
    signs.frame(stanza("iq"));
    assert.equal(signs.complaint(), null);
  }
  await clock.advance(2_000);
  signs.frame(stanza("iq"));
  assert.match(signs.complaint()!, /messages wait, and gives none/);
  signs.frame(stanza("message"));
  assert.equal(signs.complaint(), null, "they come after all");
  signs.frame(end);
  await clock.advance(3_600_000);
  assert.equal(signs.complaint(), null, "nothing waits any more");
});

Deno.test("an offline queue that never ends is complained of, one that takes its time is not", async () => {
  const { clock } = testRuntime();
  const signs = watchLiveness(clock);
  signs.frame(preview);
  for (let second = 0; second < 590; second += 10) {
    await clock.advance(10_000);
    signs.frame(stanza("message"));
    assert.equal(signs.complaint(), null);
  }
  await clock.advance(11_000);
  signs.frame(stanza("message"));
  assert.match(signs.complaint()!, /comes to no end/);
  signs.frame(end);
  assert.equal(signs.complaint(), null);
});

Deno.test("twenty messages in a row that can't be read are complained of, and one that can ends it", () => {
  const signs = watchLiveness(testRuntime().clock);
  for (let i = 0; i < 19; i++) signs.undecrypted();
  signs.decrypted();
  for (let i = 0; i < 19; i++) signs.undecrypted();
  assert.equal(signs.complaint(), null);
  signs.undecrypted();
  assert.match(signs.complaint()!, /can't be decrypted/);
  signs.decrypted();
  assert.equal(signs.complaint(), null);
  assert.equal(signs.liveness.undecryptable, 39);
});

Deno.test("a backlog that has come whole is over, though the network never says so", async () => {
  const { clock } = testRuntime();
  const signs = watchLiveness(clock);
  signs.frame(preview);
  for (const offline of ["0", "1", "2"]) signs.frame({ tag: "message", attrs: { offline } });
  await clock.advance(3_600_000);
  signs.frame(stanza("iq"));
  assert.equal(signs.complaint(), null);
});
