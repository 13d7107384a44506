import assert from "node:assert/strict";
import { type Account, type Companion, Directory } from "../../../../src/sandbox/world/directory.ts";
import { Groups } from "../../../../src/sandbox/world/groups.ts";
import { Presence } from "../../../../src/sandbox/world/presence.ts";
import { type BinaryNode, element } from "../../../../src/sandbox/world/stanza.ts";
import { testRuntime } from "../../../support/runtime.ts";
import { testCompanion } from "../companion.ts";

/** A line, and another that watches it, with what the watcher is sent. */
function scene() {
  const runtime = testRuntime();
  const directory = new Directory();
  const presence = new Presence({ directory, groups: new Groups() });
  const seen: string[] = [];
  const open = (number: string) => directory.open(number, { name: number, random: runtime.random });
  const link = (account: Account, send: (stanza: BinaryNode) => void): Companion => {
    const device = account.nextDeviceId++;
    const companion = testCompanion({ account, device });
    companion.session = { send, end: () => {}, cut: () => {}, tellExpiration: () => {} };
    account.companions.set(device, companion);
    return companion;
  };
  const account = open("4915100000001");
  const watcher = link(open("4915100000002"), ({ tag, attrs }) => {
    seen.push(`${attrs.from} ${tag === "chatstate" ? "typing" : attrs.type ?? "available"}`);
  });
  presence.take(watcher, element("presence", { type: "subscribe", to: account.jid }));
  const composing = element("chatstate", { to: watcher.jid }, [element("composing")]);
  const typing = () => presence.relayState({ account, device: 0 }, composing);
  return { presence, account, typing, open, link: () => link(account, () => {}), watcher, seen: () => seen.splice(0) };
}

Deno.test("a watcher is told when the last line that showed an account online disconnects", () => {
  const { presence, account, link, seen } = scene();
  const [first, second] = [link(), link()];
  presence.take(first, element("presence", { type: "available" }));
  assert.deepEqual(seen(), [`${account.jid} available`, `${account.jid} available`]);
  presence.leave(second);
  assert.deepEqual(seen(), [`${account.jid} available`]);
  presence.leave(first);
  assert.deepEqual(seen(), [`${account.jid} unavailable`]);
});

Deno.test("a line that was not available disconnects unannounced, and a disconnected watcher is told nothing", () => {
  const { presence, link, watcher, seen } = scene();
  const line = link();
  presence.take(line, element("presence", { type: "unavailable" }));
  seen();
  presence.leave(line);
  assert.deepEqual(seen(), []);
  presence.leave(watcher);
  presence.take(line, element("presence", { type: "available" }));
  assert.deepEqual(seen(), []);
});

Deno.test("a watcher that subscribed by LID is told of presence by LID, never by number", () => {
  const { presence, account, link, watcher, seen } = scene();
  const line = link();
  seen();
  presence.take(watcher, element("presence", { type: "subscribe", to: account.lid }));
  presence.take(line, element("presence", { type: "unavailable" }));
  presence.leave(link());
  assert.deepEqual(seen().map((line) => line.split(" ")[0]), Array(3).fill(account.lid));
});

Deno.test("an account whose only line was unlinked is offline; one that never had a line is online", () => {
  const { presence, account, open, link, watcher, seen } = scene();
  const line = link();
  seen();
  account.companions.delete(line.id);
  presence.leave(line);
  const phone = open("4915100000003");
  for (const { jid } of [account, phone]) presence.take(watcher, element("presence", { type: "subscribe", to: jid }));
  assert.deepEqual(seen(), [
    `${account.jid} unavailable`,
    `${account.jid} unavailable`,
    `${phone.jid} available`,
  ]);
});

Deno.test("typing and presence are shown to a line that is available, presence only if it has subscribed", () => {
  const { presence, account, link, typing, watcher, seen } = scene();
  const line = link();
  seen();
  const show = (companion: Companion, type: string) => presence.take(companion, element("presence", { type }));
  const happens = () => {
    show(line, "available");
    typing();
    return seen();
  };
  show(watcher, "unavailable");
  assert.deepEqual(happens(), []);
  show(watcher, "available");
  assert.deepEqual(happens(), [`${account.jid} available`, `${account.jid} typing`]);
  presence.leave(watcher);
  show(watcher, "available");
  assert.deepEqual(happens(), [`${account.jid} typing`]);
});
