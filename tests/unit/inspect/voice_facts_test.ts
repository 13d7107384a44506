/** What is shown of a voice note before it is played. */
import assert from "node:assert/strict";
import { voiceFacts } from "../../../src/inspect/file_facts.ts";
import { voiceNote } from "../../support/sample_files.ts";

Deno.test("a voice note has its length and a waveform, silent where it is silent", async () => {
  const { seconds, waveform } = await voiceFacts(voiceNote(4));
  assert.equal(seconds, 4);
  assert.equal(waveform?.length, 64);
  assert.ok(waveform!.subarray(0, 30).every((height) => height === 0), String(waveform));
  assert.equal(Math.max(...waveform!), 100);
});

Deno.test("what cannot be decoded goes without a waveform", async () => {
  assert.deepEqual(await voiceFacts(new TextEncoder().encode("no sound at all, but long enough for a page")), {});
});
