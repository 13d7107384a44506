/** What happens beside messages: votes, calls, presence and groups, as a client hears of them; kept through `kill -9`. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import type { Account } from "../../src/sandbox/world/directory.ts";
import { element } from "../../src/sandbox/world/stanza.ts";
import { onStage } from "../support/stage.ts";
import { subscribe } from "../support/subscriber.ts";

const LINE = "4915200000001";
const ANA = "4917000000001";
const BEN = "4917000000002";
const ANA_JID = `${ANA}@s.whatsapp.net`;

onStage(
  "votes in a poll of the line are reported with the names that were chosen, and counted, over kill -9 too",
  async (stage) => {
    for (const number of [ANA, BEN]) await stage.addPhone(number);
    const line = await stage.linkLine(LINE);
    const { sessionId } = line;
    const participants = [LINE, ANA, BEN];
    const { id: group } = await stage.control.call("POST", "/groups", { subject: "Team", participants });
    const client = await subscribe(stage, { events: ["poll.vote"] });
    const poll = {
      sessionId,
      to: group,
      question: "Lunch?",
      options: ["pizza", "sushi 🍣", "nothing"],
      multiple: true,
    };
    const { messageId } = await stage.api.call("POST", "/messages/send/poll", poll);
    const votes = [[ANA, ["sushi 🍣", "pizza"]], [BEN, ["nothing"]], [ANA, []], [BEN, ["pizza"]], [ANA, [
      "pizza",
    ]]] as const;
    for (const [i, [number, options]] of votes.entries()) {
      if (i === 3) {
        // Votes on a poll from before a crash are read and counted as any other.
        const { poll } = (await stage.api.call("GET", `/messages/${messageId}`)).data;
        assert.deepEqual([poll.voters, poll.options.map(({ votes }: Json) => votes)], [1, [0, 0, 1]]);
        await stage.gateway.kill();
        await stage.gateway.start();
        await stage.sessionStatus(line, "connected");
      }
      const { id } = await stage.arrival(number, ({ type }) => type.startsWith("pollCreationMessage"));
      await stage.control.call("POST", `/phones/${number}/vote`, { id, options });
      const { data } = (await client.count(i + 1)).at(-1)!;
      const chosen = poll.options.filter((option) => (options as readonly string[]).includes(option));
      assert.deepEqual(data, { messageId, networkId: id, chat: group, number, options: chosen });
    }
    assert.deepEqual((await stage.api.call("GET", `/messages/${messageId}`)).data.poll, {
      voters: 2,
      options: [{ name: "pizza", votes: 2 }, { name: "sushi 🍣", votes: 0 }, { name: "nothing", votes: 0 }],
    });
    await client.end();
  },
);

onStage("a call rings as an event, and so does what changed in groups while the gateway was killed", async (stage) => {
  for (const number of [ANA, BEN]) await stage.addPhone(number);
  const line = await stage.linkLine(LINE);
  const client = await subscribe(stage, { events: ["call.received", "group.updated", "group.participants"] });
  await stage.control.call("POST", `/phones/${ANA}/call`, { to: LINE, video: true });
  const call = await client.event("a call", ({ event }) => event === "call.received");
  const { callId, ...about } = call.data;
  assert.ok(callId.length > 0);
  assert.deepEqual(about, { chat: ANA_JID, number: ANA, video: true });

  const { id } = await stage.control.call("POST", "/groups", { subject: "Team", participants: [BEN, LINE] });
  const made = await client.event("a group", ({ event }) => event === "group.updated");
  const { createdAt, ...group } = made.data.group;
  assert.ok(Date.parse(createdAt) > 0);
  const settings = { announce: false, locked: false, ephemeral: 0 };
  assert.deepEqual(group, { id, name: "Team", description: "", size: 2, isAdmin: false, ...settings });

  await stage.gateway.kill();
  const { directory, groups, groupChanges } = stage.network.switchboard;
  const [ana, own] = [directory.account(ANA)!, directory.account(LINE)!];
  const team = groups.get(id)!;
  const change = (action: Parameters<typeof groupChanges.change>[2], account: Account) =>
    assert.deepEqual(groupChanges.change(team, team.creator, action, [account]), [{ account }]);
  change("add", ana);
  const named = element("subject", { subject: "Crew" });
  assert.equal(groupChanges.set(team, team.creator, { subject: "Crew" }, named), true);
  change("promote", ana);
  groupChanges.leave(team, ana);
  await stage.control.call("POST", `/phones/${BEN}/call`, { to: LINE });
  await stage.gateway.start();
  await stage.sessionStatus(line, "connected");
  // Whoever is removed may not ask for the group any more.
  await client.event("the new name", ({ data }) => data.group?.name === "Crew");
  await client.event("Ben's call", ({ data }) => data.number === BEN);
  change("remove", own);
  await client.event("the removal", ({ data }) => data.action === "remove");
  const reported = (await stage.events(line)).filter(({ event }: Json) =>
    event.startsWith("group.") || event === "call.received"
  );
  const changes = reported.filter(({ data }: Json) => data.action);
  assert.deepEqual(
    changes.map(({ data }: Json) => [data.action, ...data.participants.map(({ number }: Json) => number)]),
    [
      ["add", ANA],
      ["promote", ANA],
      ["leave", ANA],
      ["remove", LINE],
    ],
  );
  assert.deepEqual(changes.at(-1).data.group, { id }, "who was removed is told no more");
  assert.deepEqual(reported.filter(({ event }: Json) => event === "group.updated").at(-1).data.group.name, "Crew");
  assert.deepEqual(
    reported.filter(({ event }: Json) => event === "call.received").map(({ data }: Json) => data.number),
    [
      ANA,
      BEN,
    ],
  );
  await client.end();
});

onStage("presence is reported to those who name it, and to nobody else", async (stage) => {
  await stage.addPhone(ANA);
  const line = await stage.linkLine(LINE);
  const named = await subscribe(stage, { events: ["presence.updated"] });
  const all = await subscribe(stage);
  await stage.api.call("POST", `/sessions/${line.sessionId}/chats/${ANA}/presence`, { state: "paused" });
  await named.event("online", ({ data }) => data.state === "online");
  assert.equal((await stage.control.call("GET", `/phones/${LINE}`)).devices[0].available, true);
  for (const state of ["typing", "recording", "paused"]) {
    await stage.control.call("POST", `/phones/${ANA}/typing`, { to: LINE, state });
    const { data } = await named.event(state, ({ data }) => data.state === state);
    assert.deepEqual(data, { chat: ANA_JID, number: ANA, state });
  }
  await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, text: "here" });
  await all.event("here", ({ data }) => data.text === "here");
  assert.deepEqual(all.delivered().filter(({ event }) => event === "presence.updated"), []);
  assert.deepEqual((await stage.events(line)).filter(({ event }: Json) => event === "presence.updated"), []);
  const { data } = await stage.api.call("GET", "/events?types=presence.updated&limit=100");
  assert.deepEqual(data.map(({ data }: Json) => data.state).slice(-3), ["typing", "recording", "paused"]);
  await named.end();
  await all.end();
});
