/** What a line does with its keys after its store was set back. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { proto } from "@whiskeysockets/baileys";
import { makeSeal, sealKey } from "../../../src/store/seal.ts";
import { openAuthState } from "../../../src/whatsapp/baileys/auth_state.ts";
import { makeLinkCopy } from "../../../src/whatsapp/baileys/link_copy.ts";
import { renewKeys } from "../../../src/whatsapp/baileys/renewed_keys.ts";
import { noteSetback } from "../../../src/whatsapp/network.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { testRuntime } from "../../support/runtime.ts";

const GROUP = "123@g.us";

Deno.test("after a setback sessions are closed for sending, once, and of sender keys only those of others stay", async () => {
  const runtime = testRuntime();
  const kv = new MemoryKv();
  const line = { kv, seal: makeSeal(sealKey("a secret of the tests"), runtime.random), lineId: "ses_1" };
  const auth = await openAuthState(line);
  const { creds } = auth;
  creds.me = { id: "551:7@s.whatsapp.net", lid: "99:7@lid" };
  creds.account = { details: Buffer.from([1]) } as proto.IADVSignedDeviceIdentity;
  await auth.saveCreds();
  const session = (closed: number) => ({ _sessions: { base: { indexInfo: { closed } } }, version: "v1" });
  const senderKeys = [`${GROUP}::551::7`, `${GROUP}::99_1::7`, `${GROUP}::552::0`];
  const write = async () => {
    // deno-lint-ignore no-explicit-any -- the library's own types of what it stores are wrong
    const rows: any = { session: { "552.0": session(-1), "553.0": session(5) } };
    rows["sender-key"] = Object.fromEntries(senderKeys.map((name) => [name, Buffer.from("key")]));
    rows["sender-key-memory"] = { [GROUP]: { "552@s.whatsapp.net": true } };
    await (await openAuthState(line)).keys.set(rows);
  };
  const read = async () => {
    const { keys } = await openAuthState(line);
    return {
      closed: Object.values(await keys.get("session", ["552.0", "553.0"])).map((record) =>
        (record as unknown as ReturnType<typeof session>)._sessions.base.indexInfo.closed
      ),
      senderKeys: Object.keys(await keys.get("sender-key", senderKeys)),
      holders: Object.keys(await keys.get("sender-key-memory", [GROUP])),
    };
  };
  const before = { closed: [-1, 5], senderKeys, holders: [GROUP] };
  const after = { closed: [runtime.clock.now(), 5], senderKeys: senderKeys.slice(2), holders: [] };

  await write();
  await renewKeys({ ...line, runtime });
  assert.deepEqual(await read(), before, "never set back");
  for (let setback = 0; setback < 2; setback++) {
    await noteSetback(kv, runtime);
    await renewKeys({ ...line, runtime });
    assert.deepEqual(await read(), after);
    await write();
    await renewKeys({ ...line, runtime });
    assert.deepEqual(await read(), before, "what began since is used");
  }

  await noteSetback(kv, runtime);
  const copy = await makeLinkCopy({ ...line, runtime }).read("ses_1");
  line.kv = new MemoryKv();
  await makeLinkCopy({ ...line, runtime }).opened(copy)("ses_1");
  assert.deepEqual(await read(), after, "a line that moves before it connects again takes none of the old keys along");
});
