/** People and chats through the API: cards, blocks, the own profile, typing and reading, as phones see them. */
import assert from "node:assert/strict";
import { onSharedStage } from "../support/stage.ts";
import { subscribe } from "../support/subscriber.ts";
import { until } from "../support/until.ts";

const onContacts = onSharedStage("contacts and profiles");

const NOBODY = "4917099999999";
const JPEG = "/9j/4AAQSkZJRg==";

onContacts("a contact's card says what the network tells, and is asked for once", async (stage, [LINE, ANA, BEN]) => {
  await stage.addPhone(ANA, "Ana 🌻");
  await stage.addPhone(BEN);
  const line = await stage.linkLine(LINE);
  const path = `/sessions/${line.sessionId}/contacts/${ANA}`;
  const client = await subscribe(stage, { events: ["message.received"] });
  await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, text: "hi" });
  await client.event("hi", ({ data }) => data.text === "hi");
  const { lid } = await stage.control.call("GET", `/phones/${ANA}`);
  const account = stage.network.switchboard.directory.account(ANA)!;
  account.about = "at sea";
  account.picture = stage.network.media.keepPicture(new Uint8Array([255, 216, 255]));
  const first = await stage.request("GET", path);
  assert.equal(first.headers.get("age"), "0");
  const { data } = await first.json();
  assert.deepEqual(data, {
    exists: true,
    jid: `${ANA}@s.whatsapp.net`,
    lid,
    name: "Ana 🌻",
    about: "at sea",
    pictureUrl: account.picture,
    business: null,
  });
  const shop = { description: "Boats", category: "Shop", address: "Pier 1", email: "ana@example.com" };
  stage.network.switchboard.directory.account(BEN)!.business = { ...shop, website: "https://example.com" };
  const business = await stage.api.call("GET", `/sessions/${line.sessionId}/contacts/${BEN}`);
  assert.deepEqual(business.data.business, { ...shop, websites: ["https://example.com"] });
  account.about = "ashore";
  const again = await stage.request("GET", path);
  assert.deepEqual((await again.json()).data, data, "kept: the network is not asked again");
  assert.match(again.headers.get("age") ?? "", /^\d+$/);
  const nobody = await stage.api.call("GET", `/sessions/${line.sessionId}/contacts/${NOBODY}`);
  assert.deepEqual([nobody.data.exists, nobody.data.about], [false, null]);
  await client.end();
});

onContacts("who asks about ever new numbers is stopped before the network minds", async (stage, [LINE]) => {
  const line = await stage.linkLine(LINE);
  const statuses = new Map<number, number>();
  for (let i = 0; i < 70; i++) {
    const answer = await stage.request("GET", `/sessions/${line.sessionId}/contacts/${4917000000100 + i}`);
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
    if (answer.status === 429) assert.match(answer.headers.get("retry-after") ?? "", /^\d+$/);
    await answer.body?.cancel();
  }
  assert.deepEqual([...statuses], [[200, 60], [429, 10]]);
});

onContacts("a number is blocked, listed and unblocked", async (stage, [LINE, ANA]) => {
  await stage.addPhone(ANA);
  const line = await stage.linkLine(LINE);
  const session = `/sessions/${line.sessionId}`;
  const { lid } = await stage.control.call("GET", `/phones/${ANA}`);
  assert.deepEqual((await stage.api.call("GET", `${session}/blocklist`)).data, []);
  const blocked = await stage.api.call("PUT", `${session}/contacts/${ANA}/block`);
  assert.deepEqual(blocked.data, { number: ANA, blocked: true });
  assert.deepEqual((await stage.api.call("GET", `${session}/blocklist`)).data, [{ jid: lid, number: ANA }]);
  await stage.api.call("DELETE", `${session}/contacts/${ANA}/block`);
  assert.deepEqual((await stage.api.call("GET", `${session}/blocklist`)).data, []);
  assert.equal((await stage.request("PUT", `${session}/contacts/${NOBODY}/block`)).status, 404);
  const own = await stage.request("PUT", `${session}/contacts/${LINE}/block`);
  assert.deepEqual([own.status, (await own.json()).errors], [400, [{ path: "number", message: "is the line's own" }]]);
  assert.deepEqual((await stage.api.call("GET", `${session}/blocklist`)).data, []);
});

onContacts("the line's own profile is read and changed", async (stage, [LINE]) => {
  const line = await stage.linkLine(LINE);
  // What the phone sends to a new device carries the old name, which the library takes for the newest.
  await until(async () => (await stage.logOf(line)).some(({ salt }) => salt === true), "the history of the phone");
  const path = `/sessions/${line.sessionId}/profile`;
  const { data: before } = await stage.api.call("GET", path);
  assert.deepEqual([before.about, before.pictureUrl], [null, null]);
  const { data: after } = await stage.api.call("PATCH", path, { name: "Shop", about: "open till ten", picture: JPEG });
  const account = stage.network.switchboard.directory.account(LINE)!;
  assert.deepEqual(after, {
    name: "Shop",
    about: "open till ten",
    picture: account.picture,
    pictureUrl: account.picture,
    username: null,
  });
  assert.deepEqual([account.name, account.about], ["Shop", "open till ten"]);
  assert.deepEqual((await stage.api.call("GET", path)).data, after);
  assert.equal((await stage.api.call("PATCH", path, { picture: "" })).data.pictureUrl, null);
});

onContacts("what one line reads, the other reports as read", async (stage, [LINE, ANA]) => {
  const [reader, writer] = [await stage.linkLine(LINE), await stage.linkLine(ANA)];
  const client = await subscribe(stage, { events: ["message.received", "message.status"] });
  const messageId = await stage.sendText(writer, LINE, "please read");
  await client.event(
    "it came",
    ({ event, sessionId }) => event === "message.received" && sessionId === reader.sessionId,
  );
  const chat = `/sessions/${reader.sessionId}/chats/${ANA}/read`;
  assert.equal((await stage.api.call("POST", chat)).data.messageIds.length, 1, "a body may be left out");
  assert.deepEqual((await stage.api.call("POST", chat, {})).data.messageIds, [], "nothing came since");
  const read = await client.event("it was read", ({ data }) => data.status === "read");
  assert.equal(read.data.messageId, messageId);
  await client.end();
});

onContacts("a chat sees that the line types, and says which messages it has read", async (stage, [LINE, ANA]) => {
  await stage.addPhone(ANA);
  const line = await stage.linkLine(LINE);
  const client = await subscribe(stage, { events: ["message.received"] });
  const chat = `/sessions/${line.sessionId}/chats/${ANA}`;
  const ids: string[] = [];
  for (const text of ["one", "two", "three"]) {
    const { id } = await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, text });
    await client.event(text, ({ data }) => data.text === text);
    ids.push(id);
  }
  const typing = await stage.api.call("POST", `${chat}/presence`, { state: "typing" });
  assert.deepEqual(typing.data, { chat: ANA, state: "typing" });
  await until(() => {
    const states = stage.network.phone(ANA)!.chatStates();
    return Promise.resolve(states.some(({ from, state }) => from === `${LINE}@s.whatsapp.net` && state === "typing"));
  }, "typing, as the phone shows it");

  const read = async (json: object) => (await stage.api.call("POST", `${chat}/read`, json)).data.messageIds;
  assert.deepEqual(await read({ messageId: ids[0] }), [ids[0]]);
  assert.deepEqual((await read({})).sort(), [...ids].sort());
  assert.deepEqual(await read({}), []);
  const missing = await stage.request("POST", `${chat}/read`, {
    body: JSON.stringify({ messageId: "3EB0" }),
    headers: { "content-type": "application/json" },
  });
  assert.equal(missing.status, 404);
  await client.end();
});
