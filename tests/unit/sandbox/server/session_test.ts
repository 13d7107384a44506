/** A line's open session while the network has faults. */
import assert from "node:assert/strict";
import { openSession } from "../../../../src/sandbox/server/session.ts";
import { type BinaryNode, element } from "../../../../src/sandbox/world/stanza.ts";
import { createSwitchboard } from "../../../../src/sandbox/world/switchboard.ts";
import { testRuntime } from "../../../support/runtime.ts";
import { testCompanion } from "../companion.ts";

/** A line with an open session, and what becomes of its connection. */
function scene() {
  const runtime = testRuntime();
  const media = { url: "", host: "", auth: "", caPem: "", keepPicture: () => "" };
  const network = createSwitchboard({ runtime, media });
  const account = network.directory.open("4915100000001", { name: "Shop", random: runtime.random });
  const companion = testCompanion({ account, device: 1 });
  account.companions.set(1, companion);
  const sent: BinaryNode[] = [];
  const ends: unknown[] = [];
  const session = openSession(companion, {
    send: (stanza) => void sent.push(stanza),
    end: (last) => void ends.push(last.tag),
    cut: () => void ends.push("cut"),
    fail: (error) => void ends.push(error),
  }, network);
  sent.length = 0;
  return { runtime, network, account, session, mailbox: companion.mailbox, sent, ends };
}

/** Of a chat that is none: the network cannot tell the line's other devices where it belongs. */
const malformed = (own: string) =>
  element("message", { id: "a", to: own, recipient: "nowhere" }, [element("enc", { v: "2", type: "msg" }, "x")]);
const ping = element("iq", { id: "p", type: "get", xmlns: "w:p" });

for (const end of ["its time", "lifting it"] as const) {
  Deno.test(`when ${end} ends a silence, a malformed stanza sent during it ends its own connection and nothing else`, async () => {
    const { runtime, network, account, session, sent, ends } = scene();
    network.faults.hold(account.number, "silence", 5_000);
    for (const stanza of [ping, malformed(account.jid)]) session.onStanza(stanza);
    assert.deepEqual([sent, ends], [[], []]);
    if (end === "its time") await runtime.clock.advance(5_000);
    else network.faults.lift(account.number);
    assert.deepEqual(sent.map(({ attrs }) => attrs.id), ["p"]);
    assert.deepEqual(ends.map((error) => error instanceof TypeError), [true]);
  });
}

Deno.test("garble delivers a message with an empty ciphertext unchanged, and its sender is not affected", () => {
  const { network, account, session, mailbox, sent, ends } = scene();
  session.onStanza(element("iq", { id: "a", type: "set", xmlns: "passive" }, [element("active")]));
  network.faults.add(account.number, "garble", true, 2);
  const bodies = (content: BinaryNode["content"]) => {
    mailbox.put(element("message", { id: "m", from: account.jid }, [element("enc", { v: "2", type: "msg" }, content)]));
    const [enc] = sent.at(-1)!.content as BinaryNode[];
    return enc!.content;
  };
  assert.deepEqual(bodies(new Uint8Array(0)), new Uint8Array(0));
  assert.deepEqual(bodies(Uint8Array.of(1, 2)), Uint8Array.of(1, 2 ^ 0xff));
  assert.deepEqual(ends, []);
});
