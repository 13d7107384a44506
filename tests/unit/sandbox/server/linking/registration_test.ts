import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import { Curve, proto } from "@whiskeysockets/baileys";
import { RefBook } from "../../../../../src/sandbox/server/linking/ref_book.ts";
import { Registration } from "../../../../../src/sandbox/server/linking/registration.ts";
import { createUplink } from "../../../../../src/sandbox/server/uplink.ts";
import type { Account } from "../../../../../src/sandbox/world/directory.ts";
import { type BinaryNode, child, childrenOf, element, textOf } from "../../../../../src/sandbox/world/stanza.ts";
import { createSwitchboard } from "../../../../../src/sandbox/world/switchboard.ts";
import { testRuntime } from "../../../../support/runtime.ts";

/** A companion that asks to be linked, and the account of the phone that will. */
function scene({ refresh = false } = {}) {
  const runtime = testRuntime();
  const media = { url: "", host: "", auth: "", caPem: "", keepPicture: () => "" };
  const network = createSwitchboard({ runtime, media });
  const refs = new RefBook(runtime.random);
  const account = network.directory.open("4915100000001", { name: "Shop", random: runtime.random });
  const identity = Curve.generateKeyPair();
  const sent: BinaryNode[] = [];
  let last: BinaryNode | "cut" | null = null;
  const socket = {
    send: (stanza: BinaryNode) => void sent.push(stanza),
    end: (stanza: BinaryNode) => void (last = stanza),
    cut: () => void (last = "cut"),
    fail: () => void (last = "cut"),
  };
  const signedPreKey = { id: 1, publicKey: new Uint8Array(32), signature: new Uint8Array(64) };
  const bundle = { registrationId: 7, identityKey: identity.public, signedPreKey, preKeys: [] };
  const options = { network, refs, refresh, codeLifetimeMs: 1_000, passkeyLifetimeMs: 60_000 };
  const registration = new Registration(socket, { noisePublic: "ab", bundle }, options);
  registration.start();
  const shownRefs = childrenOf(child(sent[0], "pair-device"), "ref").map(textOf);
  return { runtime, network, refs, account, identity, sent, registration, shownRefs, end: () => last };
}

/** What a phone signs for a companion, and what that companion answers with, by the given key. */
function identities(companion: { public: Uint8Array }, prover: { private: Uint8Array }) {
  const phone = Curve.generateKeyPair();
  const details = proto.ADVDeviceIdentity.encode({ rawId: 1, timestamp: 1, keyIndex: 4 }).finish();
  const accountSignature = Curve.sign(phone.private, Buffer.concat([Buffer.of(6, 0), details, companion.public]));
  const signed = { details, accountSignatureKey: phone.public, accountSignature };
  const encoded = proto.ADVSignedDeviceIdentity.encode(signed).finish();
  const hmac = createHmac("sha256", "secret").update(encoded).digest();
  const proven = Buffer.concat([Buffer.of(6, 1), details, companion.public, phone.public]);
  const answer = { ...signed, deviceSignature: Curve.sign(prover.private, proven) };
  return {
    offered: proto.ADVSignedDeviceIdentityHMAC.encode({ details: encoded, hmac }).finish(),
    answer: proto.ADVSignedDeviceIdentity.encode(answer).finish(),
  };
}

function offerOf(signedIdentity: Uint8Array) {
  const unused = () => assert.fail("no passkey is demanded");
  return { signedIdentity, primary: { ask: unused, begin: unused, reveal: unused, open: unused, end: () => {} } };
}

/** The phone of an account, which does nothing by itself. */
function phoneOf({ jid, lid }: Account) {
  return { jid, lid, deliver: () => {}, welcome: () => {}, shareSalt: () => {} };
}

/** Asks for a code to be typed on the account's phone. */
function helloFor({ jid }: Account, name = "Chrome (Mac OS)"): BinaryNode {
  return element("iq", { id: "h", type: "set", xmlns: "md" }, [
    element("link_code_companion_reg", { stage: "companion_hello", jid }, [
      element("link_code_pairing_wrapped_companion_ephemeral_pub", {}, new Uint8Array(80)),
      element("companion_server_auth_key_pub", {}, new Uint8Array(32)),
      element("companion_platform_display", {}, new TextEncoder().encode(name)),
      element("link_code_pairing_nonce", {}, Uint8Array.of(0)),
    ]),
  ]);
}

function proofOf(pairSuccess: BinaryNode, answer: Uint8Array): BinaryNode {
  return element("iq", { id: pairSuccess.attrs.id, type: "result" }, [
    element("pair-device-sign", {}, [element("device-identity", {}, answer)]),
  ]);
}

Deno.test("a companion that signs the identity with its own key is linked and told to log in", async () => {
  const { network, account, identity, sent, registration, shownRefs, refs, end } = scene();
  assert.equal(new Set(shownRefs).size, 6);
  assert.ok(shownRefs.every((ref) => refs.find(ref) === registration && !ref.includes(",")));
  const { offered, answer } = identities(identity, identity);
  assert.deepEqual(registration.take(account, shownRefs[0]!, offerOf(offered)), {
    kind: "linked",
    deviceJid: "4915100000001:1@s.whatsapp.net",
  });
  assert.equal(account.companions.size, 0);
  registration.onStanza(proofOf(sent.at(-1)!, answer));
  const companion = account.companions.get(1)!;
  assert.deepEqual([companion.jid, companion.keyIndex, companion.noisePublic], [
    "4915100000001:1@s.whatsapp.net",
    4,
    "ab",
  ]);
  assert.equal((end() as BinaryNode).attrs.code, "515");
  assert.equal(await network.linkings.get(companion.jid), true);
});

Deno.test("a companion that signs with another key is not linked", async () => {
  const { network, account, identity, sent, registration, shownRefs, end } = scene();
  const { offered, answer } = identities(identity, Curve.generateKeyPair());
  registration.take(account, shownRefs[0]!, offerOf(offered));
  registration.onStanza(proofOf(sent.at(-1)!, answer));
  assert.equal(account.companions.size, 0);
  assert.equal((end() as BinaryNode).attrs.code, "401");
  registration.onClose();
  assert.equal(await network.linkings.get("4915100000001:1@s.whatsapp.net"), false);
});

Deno.test("a companion that sends no proof in time is disconnected, and its refs are forgotten", async () => {
  const { runtime, account, identity, registration, refs, shownRefs, end } = scene();
  registration.take(account, shownRefs[0]!, offerOf(identities(identity, identity).offered));
  await runtime.clock.advance(20_000);
  assert.equal(end(), "cut");
  registration.onClose();
  assert.ok(shownRefs.every((ref) => refs.find(ref) === null));
});

Deno.test("the refresh stage holds until the companion acknowledges it", () => {
  const { account, identity, sent, registration, shownRefs } = scene({ refresh: true });
  const { offered } = identities(identity, identity);
  assert.deepEqual(registration.take(account, shownRefs[0]!, offerOf(offered)), { kind: "refresh" });
  const asked = sent.at(-1)!;
  assert.deepEqual([asked.tag, asked.attrs.type], ["notification", "companion_reg_refresh"]);
  registration.onStanza(element("ack", { id: "another", class: "notification" }));
  assert.deepEqual(registration.take(account, shownRefs[0]!, offerOf(offered)), { kind: "refresh" });
  registration.onStanza(element("ack", { id: asked.attrs.id, class: "notification" }));
  assert.equal(registration.take(account, shownRefs[0]!, offerOf(offered)).kind, "linked");
  assert.equal(sent.filter(({ attrs }) => attrs.type === "companion_reg_refresh").length, 1);
});

Deno.test("early_success tells the companion that it is logged in before the phone has accepted it", () => {
  const { network, account, identity, sent, registration, shownRefs } = scene();
  network.faults.add(account.number, "early_success", true);
  registration.take(account, shownRefs[0]!, offerOf(identities(identity, identity).offered));
  assert.deepEqual(sent.slice(1).map(({ tag, content }) => [tag, Array.isArray(content) && content[0]!.tag]), [
    ["success", false],
    ["iq", "pair-success"],
  ]);
  assert.equal(account.companions.size, 0);
});

Deno.test("companion_hello is refused by refuse_code, or for an invalid name, and the next one is answered", () => {
  const { network, account, sent, registration } = scene();
  network.faults.add(account.number, "refuse_code", { code: "429" });
  registration.onStanza(helloFor(account));
  assert.equal(child(sent.at(-1), "error")?.attrs.code, "429");
  for (const name of ["", "Paloma", "Chrome Mac OS", "(Mac OS)"]) {
    registration.onStanza(helloFor(account, name));
    assert.equal(child(sent.at(-1), "error")?.attrs.code, "400", name);
  }
  registration.onStanza(helloFor(account));
  assert.equal(sent.at(-1)!.attrs.type, "result");
  registration.onClose();
});

Deno.test("a code is invalid once the companion has asked for one for another number", async () => {
  const { runtime, network, refs, account, identity, sent, registration } = scene();
  const other = network.directory.open("4915100000002", { name: "Other", random: runtime.random });
  const uplink = createUplink(network, refs);
  const { offered } = identities(identity, identity);
  registration.onStanza(helloFor(account));
  const { ref } = uplink.codeRequest(phoneOf(account))!;
  const hello = { wrappedEphemeral: new Uint8Array(80), identityPublic: new Uint8Array(32) };
  const exchange = uplink.answerCode(ref, hello);
  registration.onStanza(helloFor(other));
  assert.equal(await exchange, null);
  assert.equal(uplink.codeRequest(phoneOf(account)), null);
  const { primary } = offerOf(offered);
  assert.deepEqual(uplink.acceptQr(phoneOf(account), ref, offered, primary), { kind: "unknown_ref" });
  assert.ok(!sent.some((stanza) => child(stanza, "pair-success")));
  const { ref: otherRef } = uplink.codeRequest(phoneOf(other))!;
  assert.equal(uplink.acceptQr(phoneOf(other), otherRef, offered, primary).kind, "linked");
  registration.onClose();
});

Deno.test("a code is invalid once the phone has used it", () => {
  const { network, refs, account, identity, registration } = scene();
  const uplink = createUplink(network, refs);
  registration.onStanza(helloFor(account));
  const { ref } = uplink.codeRequest(phoneOf(account))!;
  const { offered } = identities(identity, identity);
  assert.equal(uplink.acceptQr(phoneOf(account), ref, offered, offerOf(offered).primary).kind, "linked");
  assert.equal(uplink.codeRequest(phoneOf(account)), null);
  registration.onClose();
});

Deno.test("a QR that one phone has scanned is invalid for another, whether or not the link is complete", async () => {
  const { runtime, network, refs, account, identity, sent, registration, shownRefs } = scene();
  const other = network.directory.open("4915100000002", { name: "Other", random: runtime.random });
  const uplink = createUplink(network, refs);
  const { offered, answer } = identities(identity, identity);
  const scan = (by: Account) => uplink.acceptQr(phoneOf(by), shownRefs[0]!, offered, offerOf(offered).primary);
  const linked = scan(account);
  assert.equal(linked.kind, "linked");
  assert.deepEqual(scan(other), { kind: "unknown_ref" });
  assert.deepEqual(scan(account), linked);
  registration.onStanza(proofOf(sent.at(-1)!, answer));
  assert.deepEqual(scan(other), { kind: "unknown_ref" });
  registration.onClose();
  assert.deepEqual([scan(other), scan(account)], [{ kind: "unknown_ref" }, linked]);
  assert.equal(other.companions.size, 0);
  assert.equal(await network.linkings.get(account.companions.get(1)!.jid), true);
});

Deno.test("the QR of a device that has been unlinked is invalid", () => {
  const { network, refs, account, identity, sent, registration, shownRefs } = scene();
  const uplink = createUplink(network, refs);
  const { offered, answer } = identities(identity, identity);
  const scan = () => uplink.acceptQr(phoneOf(account), shownRefs[0]!, offered, offerOf(offered).primary);
  const linked = scan();
  registration.onStanza(proofOf(sent.at(-1)!, answer));
  registration.onClose();
  assert.deepEqual(scan(), linked);
  network.removeCompanion(account.companions.get(1)!);
  assert.deepEqual(scan(), { kind: "unknown_ref" });
});
