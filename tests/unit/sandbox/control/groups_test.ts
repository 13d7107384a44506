/** Groups: their admins, changes that are refused, and joining. */
import assert from "node:assert/strict";
import { controlApp } from "../../../../src/sandbox/control/app.ts";
import { startNetwork } from "../../../../src/sandbox/network.ts";
import { testRuntime } from "../../../support/runtime.ts";

const [MAKER, ANA, BEN] = ["4917000000001", "4917000000002", "4917000000003"] as const;
const STRANGER = "4917000000004";

/** Runs `act` on a group of the three, with the status and body of each request. */
function inGroup(name: string, act: (ask: Ask) => Promise<void>) {
  Deno.test(name, async () => {
    const network = await startNetwork({ runtime: testRuntime() });
    const app = controlApp(network);
    const send = async (method: string, path: string, asked?: unknown) => {
      const response = await app.request(`http://127.0.0.1:8081${path}`, { method, body: JSON.stringify(asked) });
      return { status: response.status, body: await response.json() };
    };
    try {
      for (const number of [MAKER, ANA, BEN, STRANGER]) network.addPhone(number);
      const made = await send("POST", "/groups", { subject: "Friends", participants: [MAKER, ANA, BEN] });
      await act((method, path, asked) => send(method, `/groups/${made.body.id}${path}`, asked));
    } finally {
      await network.close();
    }
  });
}

type Ask = (method: string, path: string, asked?: unknown) => Promise<{
  status: number;
  body: { subject: string; detail: string; participants: { number: string; admin: boolean }[] };
}>;

inGroup("other admins manage a group after its creator has left", async (ask) => {
  await ask("POST", "/participants", { action: "promote", participants: [ANA] });
  await ask("POST", "/participants", { action: "leave", participants: [MAKER] });
  assert.equal((await ask("PATCH", "", { subject: "Old friends" })).body.subject, "Old friends");
  const { body } = await ask("POST", "/participants", { action: "remove", participants: [BEN] });
  assert.deepEqual(body.participants.map(({ number }) => number), [ANA]);
});

inGroup("when the last admin leaves, the longest-standing member becomes admin", async (ask) => {
  const admins = ({ body }: Awaited<ReturnType<Ask>>) =>
    body.participants.flatMap((one) => one.admin ? one.number : []);
  await ask("POST", "/participants", { action: "promote", participants: [BEN] });
  assert.deepEqual(admins(await ask("POST", "/participants", { action: "leave", participants: [MAKER] })), [BEN]);
  assert.deepEqual(admins(await ask("POST", "/participants", { action: "leave", participants: [BEN] })), [ANA]);
  await ask("POST", "/participants", { action: "add", participants: [BEN] });
  assert.deepEqual(admins(await ask("POST", "/participants", { action: "remove", participants: [ANA] })), [BEN]);
  assert.deepEqual(admins(await ask("POST", "/participants", { action: "leave", participants: [BEN] })), []);
});

inGroup("a change that no member may make is refused", async (ask) => {
  await ask("POST", "/participants", { action: "leave", participants: [MAKER] });
  await ask("POST", "/participants", { action: "demote", participants: [ANA] });
  const refused = await ask("POST", "/participants", { action: "promote", participants: [ANA] });
  assert.equal(refused.status, 400);
  assert.match(refused.body.detail, /without an admin/);
  assert.equal((await ask("PATCH", "", { subject: "Old friends" })).body.subject, "Old friends");
  await ask("POST", "/participants", { action: "leave", participants: [ANA, BEN] });
  assert.equal((await ask("PATCH", "", { subject: "Nobody" })).status, 400);
});

for (
  const [action, refused, why] of [
    ["add", BEN, /is already in the group/],
    ["remove", MAKER, /created the group/],
    ["demote", MAKER, /created the group/],
    ["remove", STRANGER, /is not in the group/],
    ["promote", STRANGER, /is not in the group/],
    ["demote", STRANGER, /is not in the group/],
    ["leave", STRANGER, /is not in the group/],
  ] as const
) {
  inGroup(
    `${action} is refused as a whole if one participant is refused, and names it: ${why.source}`,
    async (ask) => {
      const other = action === "add" ? STRANGER : ANA;
      const answer = await ask("POST", "/participants", { action, participants: [other, refused] });
      assert.equal(answer.status, 400);
      assert.match(answer.body.detail, /^participants\.1: /);
      assert.match(answer.body.detail, why);
      const { body } = await ask("GET", "");
      assert.deepEqual(body.participants.map(({ number, admin }) => [number, admin]), [
        [MAKER, true],
        [ANA, false],
        [BEN, false],
      ]);
    },
  );
}

inGroup("a creator who left the group can be added again", async (ask) => {
  await ask("POST", "/participants", { action: "promote", participants: [ANA] });
  await ask("POST", "/participants", { action: "leave", participants: [MAKER] });
  const { body } = await ask("POST", "/participants", { action: "add", participants: [MAKER] });
  const maker = body.participants.find(({ number }) => number === MAKER);
  assert.equal(maker?.admin, false);
});

inGroup("a creator who was added again is a member like any other", async (ask) => {
  await ask("POST", "/participants", { action: "promote", participants: [ANA] });
  await ask("POST", "/participants", { action: "leave", participants: [MAKER] });
  await ask("POST", "/participants", { action: "add", participants: [MAKER] });
  await ask("POST", "/participants", { action: "promote", participants: [MAKER] });
  const demoted = await ask("POST", "/participants", { action: "demote", participants: [MAKER] });
  assert.equal(demoted.body.participants.find(({ number }) => number === MAKER)?.admin, false);
  const removed = await ask("POST", "/participants", { action: "remove", participants: [MAKER] });
  assert.deepEqual(removed.body.participants.map(({ number }) => number), [ANA, BEN]);
});

Deno.test("a phone joins by a group's link, also with a query, and by its code alone", async () => {
  const network = await startNetwork({ runtime: testRuntime() });
  const app = controlApp(network);
  try {
    for (const number of [MAKER, ANA, BEN, STRANGER]) network.addPhone(number);
    const { directory, groupChanges } = network.switchboard;
    const participants = [directory.account(MAKER)!];
    const { invite, jid } = groupChanges.create({ subject: "Friends", participants, addressing: "lid" });
    const link = `https://chat.whatsapp.com/${invite}`;
    for (const [number, followed] of [[ANA, link], [BEN, `${link}?mode=a/b`], [STRANGER, invite]] as const) {
      const init = { method: "POST", body: JSON.stringify({ invite: followed }) };
      const response = await app.request(`http://127.0.0.1:8081/phones/${number}/join`, init);
      assert.deepEqual(await response.json(), { gid: jid, status: "joined" }, followed);
    }
  } finally {
    await network.close();
  }
});

Deno.test("a member who is added while a request to join is pending is in the group once", async () => {
  const network = await startNetwork({ runtime: testRuntime() });
  try {
    for (const number of [MAKER, ANA]) network.addPhone(number);
    const { directory, groupChanges } = network.switchboard;
    const [maker, ana] = [directory.account(MAKER)!, directory.account(ANA)!];
    const group = groupChanges.create({ subject: "Friends", participants: [maker], addressing: "lid" });
    group.approval = true;
    groupChanges.join(group.invite, ana);
    groupChanges.change(group, maker, "add", [ana]);
    assert.deepEqual(groupChanges.decide(group, maker, true, [ana]), [{ account: ana, error: "404" }]);
    assert.deepEqual(group.participants, [maker, ana]);
  } finally {
    await network.close();
  }
});
