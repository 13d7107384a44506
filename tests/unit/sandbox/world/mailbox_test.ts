import assert from "node:assert/strict";
import { Mailbox } from "../../../../src/sandbox/world/mailbox.ts";
import { type BinaryNode, element } from "../../../../src/sandbox/world/stanza.ts";

const ANA = "4915100000001@s.whatsapp.net";
const BEN = "4915100000002@s.whatsapp.net";
const message = (id: string, from = ANA) => element("message", { id, from });
const receipt = (id: string, attrs: Record<string, string> = {}) => element("receipt", { id, to: ANA, ...attrs });

/** Attaches, requests `count` of the backlog, and answers what came over as `tag id offline`. */
function connect(mailbox: Mailbox, count = Infinity): string[] {
  const seen: string[] = [];
  mailbox.attach(({ tag, attrs, content }) => {
    const inner = Array.isArray(content) ? ` ${(content as BinaryNode[])[0]?.tag}` : "";
    seen.push(tag === "ib" ? `ib${inner}` : `${tag} ${attrs.id}${attrs.offline === undefined ? "" : " offline"}`);
  });
  mailbox.request(count);
  return seen;
}

Deno.test("the backlog comes as far as it was requested, and new stanzas only after the last of it", () => {
  const mailbox = new Mailbox();
  for (const id of ["a", "b", "c", "d", "e", "f", "g"]) mailbox.put(message(id));
  const seen = connect(mailbox, 0);
  const unrequested = ["a", "b", "c", "d", "e"].map((id) => `message ${id} offline`);
  assert.deepEqual(seen.splice(0), ["ib offline_preview", ...unrequested]);
  mailbox.request(1);
  mailbox.put(message("h"));
  assert.deepEqual(seen.splice(0), ["message f offline"]);
  mailbox.request(2);
  mailbox.put(message("i"));
  assert.deepEqual(seen, ["message g offline", "message h offline", "ib offline", "message i"]);
});

Deno.test("the backlog is delivered first, in order and marked as offline, then new stanzas", () => {
  const mailbox = new Mailbox();
  for (const id of ["a", "b", "c"]) mailbox.put(message(id));
  const seen = connect(mailbox);
  mailbox.put(message("d"));
  assert.deepEqual(seen, [
    "ib offline_preview",
    "message a offline",
    "message b offline",
    "message c offline",
    "ib offline",
    "message d",
  ]);
});

Deno.test("a stanza that was not acknowledged is delivered again after a reconnect", () => {
  const mailbox = new Mailbox();
  for (const id of ["a", "b", "c"]) mailbox.put(message(id));
  connect(mailbox);
  mailbox.acknowledge(receipt("b"));
  mailbox.detach();
  mailbox.put(message("d"));
  const seen = connect(mailbox).filter((one) => one.startsWith("message"));
  assert.deepEqual(seen, ["message a offline", "message c offline", "message d offline"]);
  assert.equal(mailbox.size, 3);
});

Deno.test("an ack, a receipt and each id of a batched receipt remove a stanza; a retry receipt does not", () => {
  const mailbox = new Mailbox();
  for (const id of ["a", "b", "c", "d"]) mailbox.put(message(id));
  mailbox.put(element("receipt", { id: "a", from: ANA }));
  mailbox.acknowledge(receipt("a", { type: "retry" }));
  assert.equal(mailbox.size, 5);
  mailbox.acknowledge(element("ack", { id: "a", class: "message", to: ANA, error: "500" }));
  const items = element("list", {}, [element("item", { id: "c" }), element("item", { id: "unknown" })]);
  mailbox.acknowledge({ ...receipt("b", { type: "read" }), content: [items] });
  assert.equal(mailbox.size, 2);
  mailbox.acknowledge(element("ack", { id: "a", class: "receipt", to: ANA }));
  assert.deepEqual(connect(mailbox).filter((one) => one.includes(" d ")), ["message d offline"]);
});

Deno.test("two peers that chose the same id are told apart", () => {
  const mailbox = new Mailbox();
  mailbox.put(message("same", ANA));
  mailbox.put(message("same", BEN));
  mailbox.acknowledge(receipt("same", { to: BEN }));
  const left: string[] = [];
  mailbox.attach(({ tag, attrs }) => tag === "message" && left.push(attrs.from!));
  mailbox.request(Infinity);
  assert.deepEqual(left, [ANA]);
});

Deno.test("a companion without a backlog is told that it is empty", () => {
  assert.deepEqual(connect(new Mailbox()), ["ib offline"]);
});

Deno.test("a refused status post blocks the mailbox until it is acknowledged", () => {
  const mailbox = new Mailbox();
  const post = element("message", { id: "post", from: "status@broadcast", participant: ANA });
  connect(mailbox);
  mailbox.put(post);
  mailbox.acknowledge(element("ack", { class: "message", id: "post", to: "status@broadcast", error: "500" }));
  mailbox.put(message("a"));
  mailbox.detach();
  const seen = connect(mailbox);
  assert.deepEqual(seen, ["ib offline_preview", "message post offline"]);
  mailbox.acknowledge(element("ack", { class: "message", id: "post", to: "status@broadcast" }));
  assert.deepEqual(seen.slice(2), ["message a offline", "ib offline"]);
});

Deno.test("a message that the companion refuses is removed like an acknowledged one", () => {
  const mailbox = new Mailbox();
  mailbox.put(message("a"));
  mailbox.acknowledge(element("ack", { class: "message", id: "a", to: ANA, error: "500" }));
  assert.equal(mailbox.size, 0);
});
