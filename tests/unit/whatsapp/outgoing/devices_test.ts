/** The devices of people: those without keys, changes that are announced under another address, and the line's own. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { getBinaryNodeChild, getBinaryNodeChildren, initAuthCreds } from "@whiskeysockets/baileys";
import {
  makeDevices,
  NoDevice,
  reachPerson,
  rotateSenderKey,
} from "../../../../src/whatsapp/baileys/outgoing/devices.ts";
import { ManualClock, settle } from "../../../support/runtime.ts";

const NUMBER = "4917000000001";
const LID = "123456";
const GROUP = "1@g.us";

function world() {
  const clock = new ManualClock();
  const creds = { ...initAuthCreds(), me: { id: "4915100000001:3@s.whatsapp.net", lid: "777:3@lid" } };
  const lidMapping = {
    getLIDForPN: (pn: string) => Promise.resolve(pn.startsWith(NUMBER) ? `${LID}@lid` : null),
    getPNForLID: (lid: string) => Promise.resolve(lid.startsWith(LID) ? `${NUMBER}@s.whatsapp.net` : null),
  };
  const devices = makeDevices({ creds, clock, lidMapping: () => lidMapping });
  return { clock, devices };
}

const keyAnswer = () => ({
  tag: "iq",
  attrs: { type: "result" },
  content: [{
    tag: "list",
    attrs: {},
    content: [
      { tag: "user", attrs: { jid: `${LID}@lid` }, content: [{ tag: "skey", attrs: {} }] },
      { tag: "user", attrs: { jid: `${LID}:2@lid` }, content: [{ tag: "error", attrs: { code: "406" } }] },
    ],
  }],
});

Deno.test("a device without keys is taken out of the answer, and left out under both addresses for a while", async () => {
  const { clock, devices } = world();
  const answer = keyAnswer();
  devices.watch(answer);
  const users = getBinaryNodeChildren(getBinaryNodeChild(answer, "list"), "user");
  assert.deepEqual(users.map(({ attrs }) => attrs.jid), [`${LID}@lid`], "as the library reads it");
  await settle();
  for (const user of [LID, NUMBER]) {
    await devices.cache.set(user, [{ user, device: 0 }, { user, device: 2 }]);
    assert.deepEqual(await devices.cache.get(user), [{ user, device: 0 }]);
  }
  assert.ok(devices.isKeyless(`${NUMBER}:2@s.whatsapp.net`));
  await clock.advance(5 * 60_000 + 1);
  assert.ok(!devices.isKeyless(`${LID}:2@lid`));
});

Deno.test("a change that is announced by LID drops the list that was kept by number", async () => {
  const { devices } = world();
  await devices.cache.set(NUMBER, [{ user: NUMBER, device: 0 }]);
  const device = { tag: "device", attrs: { jid: `${LID}:4@lid` } };
  const add = { tag: "add", attrs: {}, content: [device] };
  devices.watch({ tag: "notification", attrs: { type: "devices", from: `${LID}@lid` }, content: [add] });
  await settle();
  assert.equal(await devices.cache.get(NUMBER), undefined);
});

Deno.test("the line's own device is none of its group's, by number or by LID", async () => {
  const { devices } = world();
  await devices.cache.set("777", [{ user: "777", device: 0 }, { user: "777", device: 3 }]);
  assert.deepEqual(await devices.cache.get("777"), [{ user: "777", device: 0 }]);
});

Deno.test("a person none of whose devices has keys can't be written to now", async () => {
  const socket = {
    authState: { creds: { me: { id: "1@s.whatsapp.net" } } },
    getUSyncDevices: () => Promise.resolve([{ user: LID, device: 0, jid: `${LID}@lid` }]),
    assertSessions: () => Promise.resolve(true),
  } as unknown as Parameters<typeof reachPerson>[0];
  await assert.rejects(reachPerson(socket, `${LID}@lid`, { isKeyless: () => true }), NoDevice);
  await reachPerson(socket, `${LID}@lid`, { isKeyless: () => false });
});

for (
  const [who, participants, isRotated] of [["is gone", ["5@lid"], true], [
    "is there",
    ["5@lid", "6@lid"],
    false,
  ]] as const
) {
  Deno.test(`the sender key of a group is ${isRotated ? "changed" : "kept"} when a member who has it ${who}`, async () => {
    const written: Record<string, unknown>[] = [];
    const socket = {
      authState: {
        creds: { me: { id: "1:3@s.whatsapp.net", lid: "777:3@lid" } },
        keys: {
          get: () => Promise.resolve({ [GROUP]: { "5@lid": true, "6:2@lid": true, "777@lid": true } }),
          set: (data: Record<string, unknown>) => Promise.resolve(void written.push(data)),
        },
      },
    } as unknown as Parameters<typeof rotateSenderKey>[0];
    const group = { id: GROUP, participants: participants.map((id) => ({ id })) };
    await rotateSenderKey(socket, group as unknown as Parameters<typeof rotateSenderKey>[1]);
    const rotated = {
      "sender-key": { [`${GROUP}::1::3`]: null, [`${GROUP}::777_1::3`]: null },
      "sender-key-memory": { [GROUP]: null },
    };
    assert.deepEqual(written, isRotated ? [rotated] : []);
  });
}

Deno.test("the hash of a group's devices names the line's own, and is unknown while a member's are", async () => {
  const { devices } = world();
  const group = { id: GROUP, addressingMode: "lid", participants: [{ id: "777@lid" }, { id: `${LID}@lid` }] } as never;
  await devices.cache.set("777", [{ user: "777", device: 0, server: "lid" }]);
  assert.equal(devices.hashOf(group), null);
  await devices.cache.set(LID, [{ user: LID, device: 0, server: "lid" }, { user: LID, device: 2, server: "lid" }]);
  const named = ["123456.0:0@lid", "123456.0:2@lid", "777.0:0@lid", "777.0:3@lid"].join("");
  const hash = createHash("sha256").update(named).digest().subarray(0, 6).toString("base64");
  assert.equal(devices.hashOf(group), `2:${hash}`);
  devices.watch(keyAnswer());
  await settle();
  assert.equal(devices.hashOf(group), `2:${hash}`, "a device without keys is one of them");
});
