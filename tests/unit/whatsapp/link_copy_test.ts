/** The copy of a link is whole before it can be used, and never overwrites keys that are in use. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { proto } from "@whiskeysockets/baileys";
import { makeSeal, sealKey } from "../../../src/store/seal.ts";
import { openAuthState, readLink } from "../../../src/whatsapp/baileys/auth_state.ts";
import { makeLinkCopy } from "../../../src/whatsapp/baileys/link_copy.ts";
import { MemoryDisk, MemoryKv } from "../../support/memory_kv.ts";
import { testRuntime } from "../../support/runtime.ts";

const runtime = testRuntime();
const seal = makeSeal(sealKey("a secret of the tests"), runtime.random);
const LINE = "ses_1";
/** More than one commit takes. */
const NAMES = Array.from({ length: 250 }, (_, i) => `${i}@g.us`);

/** Gives the line a key for each of the names. */
async function keep(kv: MemoryKv, key: string): Promise<void> {
  const { keys } = await openAuthState({ kv, seal, lineId: LINE });
  await keys.set({ "sender-key": Object.fromEntries(NAMES.map((name) => [name, Buffer.from(key)])) });
}

async function keysIn(kv: MemoryKv): Promise<string[]> {
  const { keys } = await openAuthState({ kv, seal, lineId: LINE });
  return Object.values(await keys.get("sender-key", NAMES)).map(String);
}

async function aCopy(): Promise<Uint8Array> {
  const kv = new MemoryKv();
  const auth = await openAuthState({ kv, seal, lineId: LINE });
  auth.creds.me = { id: "551@s.whatsapp.net" };
  auth.creds.account = { details: Buffer.from([1]) } as proto.IADVSignedDeviceIdentity;
  await auth.saveCreds();
  await keep(kv, "copied");
  return await makeLinkCopy({ kv, seal, runtime }).read(LINE);
}

Deno.test("a line is linked by a copy only once all of its keys are there, and the next try writes what is missing", async () => {
  const copy = await aCopy();
  let died = true;
  for (let commits = 0; died; commits++) {
    const disk = new MemoryDisk();
    const dying = new MemoryKv(disk);
    dying.commitsLeft = commits;
    died = await makeLinkCopy({ kv: dying, seal, runtime }).opened(copy)(LINE).then(() => false, () => true);
    const kv = new MemoryKv(disk);
    assert.equal(await readLink({ kv, seal, lineId: LINE }) !== null, !died, `died at commit ${commits}`);
    await makeLinkCopy({ kv, seal, runtime }).opened(copy)(LINE);
    assert.deepEqual(await keysIn(kv), NAMES.map(() => "copied"));
  }
});

Deno.test("a copy that is written again leaves the keys of a line that has used it meanwhile", async () => {
  const copy = await aCopy();
  const kv = new MemoryKv();
  const link = makeLinkCopy({ kv, seal, runtime });
  await link.opened(copy)(LINE);
  await keep(kv, "used");
  await link.opened(copy)(LINE);
  assert.deepEqual(await keysIn(kv), NAMES.map(() => "used"));
});

Deno.test("what is no copy of a link is refused before anything is written, rows of other families too", () => {
  const link = makeLinkCopy({ kv: new MemoryKv(), seal, runtime });
  for (const copy of ["", "null", "{}", '[["creds","e30="]]', '[[["creds"],7]]', '[[["sent","1"],"e30="]]']) {
    assert.throws(() => link.opened(new TextEncoder().encode(copy)), /does not hold the link of a line/, copy);
  }
});
