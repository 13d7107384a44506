/** Linking with a passkey, byte by byte: a companion written down from the protocol, against the network and a phone. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import {
  createCipheriv,
  createHash,
  createHmac,
  createPrivateKey,
  createSign,
  hkdfSync,
  randomBytes,
} from "node:crypto";
import { Curve, type KeyPair, proto } from "@whiskeysockets/baileys";
import { Phone } from "../../../../../src/sandbox/phone/phone.ts";
import { RefBook } from "../../../../../src/sandbox/server/linking/ref_book.ts";
import { Registration } from "../../../../../src/sandbox/server/linking/registration.ts";
import { createUplink } from "../../../../../src/sandbox/server/uplink.ts";
import {
  type BinaryNode,
  bytesOf,
  child,
  childrenOf,
  element,
  textOf,
} from "../../../../../src/sandbox/world/stanza.ts";
import { createSwitchboard } from "../../../../../src/sandbox/world/switchboard.ts";
import { testRuntime } from "../../../../support/runtime.ts";

const LIFETIME_MS = 60_000;
const CHROME = proto.DeviceProps.PlatformType.CHROME;
const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTVWXYZ";

/** A network with one phone whose account demands a passkey. */
function scene(options: { query?: boolean } = {}) {
  const runtime = testRuntime();
  const network = createSwitchboard({
    runtime,
    media: { url: "", host: "", auth: "", caPem: "", keepPicture: () => "" },
  });
  const refs = new RefBook(runtime.random);
  const account = network.directory.open("4915100000001", { name: "Shop", random: runtime.random });
  const uplink = createUplink(network, refs);
  const phone = new Phone({ runtime, uplink, number: account.number, lid: account.lid, passkey: true });
  account.phone = phone;
  if (options.query) account.passkey!.options = "query";
  const companion = () => new TestCompanion(network, refs);
  /** Its account demands no passkey. */
  const secondPhone = (number: string) => {
    const { lid } = network.directory.open(number, { name: "Other", random: runtime.random });
    return new Phone({ runtime, uplink, number, lid });
  };
  return { runtime, network, account, phone, companion, secondPhone };
}

/** What a companion does, as the protocol says it, and nothing else. */
class TestCompanion {
  readonly identity = Curve.generateKeyPair();
  readonly noise = Curve.generateKeyPair();
  advSecret: Uint8Array = randomBytes(32);
  handoffKey: Uint8Array | null = null;
  /** Kept by a test that never acknowledges. */
  acknowledges = true;
  readonly received: BinaryNode[] = [];
  #registration: Registration;
  #ref = "";
  #ephemeral: KeyPair = Curve.generateKeyPair();
  #nonce: Uint8Array = randomBytes(32);
  #answers = new Map<string, (answer: BinaryNode) => void>();
  closed = false;

  constructor(network: ReturnType<typeof createSwitchboard>, refs: RefBook) {
    const socket = {
      send: (stanza: BinaryNode) => this.#take(stanza),
      end: (stanza: BinaryNode) => void this.received.push(stanza),
      cut: () => void (this.closed = true),
      fail: () => void (this.closed = true),
    };
    const signedPreKey = { id: 1, publicKey: new Uint8Array(32), signature: new Uint8Array(64) };
    const bundle = { registrationId: 7, identityKey: this.identity.public, signedPreKey, preKeys: [] };
    const noisePublic = Buffer.from(this.noise.public).toString("hex");
    this.#registration = new Registration(socket, { noisePublic, bundle }, {
      network,
      refs,
      refresh: true,
      codeLifetimeMs: 60_000,
      passkeyLifetimeMs: LIFETIME_MS,
    });
    this.#registration.start();
  }

  #take(stanza: BinaryNode): void {
    this.received.push(stanza);
    if (stanza.tag === "iq") this.#answers.get(stanza.attrs.id!)?.(stanza);
    if (stanza.attrs.type === "passkey_prologue_request") {
      this.handoffKey = hkdf(this.advSecret, "", "shortcake-passkey-handoff-v1");
      this.advSecret = randomBytes(32);
    }
    if (stanza.tag !== "notification" || !this.acknowledges) return;
    this.#registration.onStanza(element("ack", { id: stanza.attrs.id, class: "notification", to: stanza.attrs.from }));
  }

  get qr(): string {
    const ref = textOf(childrenOf(child(this.received[0], "pair-device"), "ref")[0]);
    const keys = [this.noise.public, this.identity.public, this.advSecret];
    return [ref, ...keys.map((key) => Buffer.from(key).toString("base64")), "1"].join(",");
  }

  /** The newest request to sign; with the options where they came along. */
  get request(): BinaryNode {
    return this.received.findLast(({ attrs }) => attrs.type === "passkey_prologue_request")!;
  }

  get requests(): number {
    return this.received.filter(({ attrs }) => attrs.type === "passkey_prologue_request").length;
  }

  get options() {
    return JSON.parse(textOf(child(this.request, "passkey_request_options")));
  }

  /** Sends a query and waits for its answer. */
  async query(type: string, content: BinaryNode): Promise<BinaryNode> {
    const id = `q${this.#answers.size}`;
    const answer = Promise.withResolvers<BinaryNode>();
    this.#answers.set(id, answer.resolve);
    this.#registration.onStanza(element("iq", { id, to: "@s.whatsapp.net", type, xmlns: "md" }, [content]));
    return await answer.promise;
  }

  askForCode(number: string): Promise<BinaryNode> {
    return this.query(
      "set",
      element("link_code_companion_reg", { stage: "companion_hello", jid: `${number}@s.whatsapp.net` }, [
        element("link_code_pairing_wrapped_companion_ephemeral_pub", {}, new Uint8Array(80)),
        element("companion_server_auth_key_pub", {}, new Uint8Array(32)),
        element("companion_platform_display", {}, Buffer.from("Chrome (Mac OS)")),
        element("link_code_pairing_nonce", {}, Uint8Array.of(0)),
      ]),
    );
  }

  async fetchRef(): Promise<string> {
    const answer = await this.query("get", element("ref"));
    return this.#ref = textOf(child(answer, "ref"));
  }

  payload(change: { ref?: string; publicKey?: Uint8Array; commitment?: Uint8Array } = {}): Uint8Array {
    const { ref = this.#ref, publicKey = this.#ephemeral.public } = change;
    const identity = proto.CompanionEphemeralIdentity.encode({ publicKey, deviceType: CHROME, ref }).finish();
    const hash = change.commitment ?? createHash("sha256").update(identity).update(this.#nonce).digest();
    return proto.ProloguePayload.encode({ companionEphemeralIdentity: identity, commitment: { hash } }).finish();
  }

  /** The prologue, with a handoff proof unless that is left out. */
  async prologue(
    assertion: ReturnType<Phone["signPasskey"]>,
    { payload, proof = true }: { payload?: Uint8Array; proof?: boolean } = {},
  ): Promise<BinaryNode> {
    payload ??= (await this.fetchRef(), this.payload());
    const children = [
      element("credential_id", {}, Buffer.from(assertion.rawId, "base64url")),
      element("webauthn_assertion", {}, Buffer.from(JSON.stringify(assertion))),
      element("prologue_payload", {}, payload),
    ];
    const made = createHmac("sha256", this.handoffKey!).update(payload).digest();
    if (proof) children.push(element("pairing_handoff_proof", {}, made));
    return await this.query("set", element("passkey_prologue", {}, children));
  }

  get primary(): proto.PrimaryEphemeralIdentity {
    const continuation = this.received.findLast(({ attrs }) => attrs.type === "crsc_continuation");
    return proto.PrimaryEphemeralIdentity.decode(bytesOf(child(continuation, "primary_ephemeral_identity")));
  }

  get code(): string {
    const { publicKey, nonce } = this.primary;
    const digest = createHash("sha256").update(this.#nonce).update(publicKey!).digest();
    let value = 0n;
    for (let i = 0; i < 5; i++) value = value << 8n | BigInt(nonce![i]! ^ digest[i]!);
    const digits = Array.from({ length: 8 }, (_, i) => ALPHABET[Number(value >> BigInt(35 - 5 * i) & 31n)]).join("");
    return `${digits.slice(0, 4)}-${digits.slice(4)}`;
  }

  reveal(nonce = this.#nonce): Promise<BinaryNode> {
    return this.query("set", element("companion_nonce", {}, nonce));
  }

  /** The encrypted pairing request, under the right key unless another is given. */
  hand(change: { key?: Uint8Array; identity?: Uint8Array } = {}): Promise<BinaryNode> {
    const shared = Curve.sharedKey(this.#ephemeral.private, this.primary.publicKey!);
    const salt = `Companion Pairing ${CHROME} with ref ${this.#ref}`;
    const key = change.key ?? hkdf(shared, salt, "Pairing Information Encryption Key");
    const iv = randomBytes(12);
    const cipher = createCipheriv("aes-256-gcm", key, iv);
    const request = proto.PairingRequest.encode({
      companionPublicKey: this.noise.public,
      companionIdentityKey: change.identity ?? this.identity.public,
      advSecret: this.advSecret,
    }).finish();
    const encryptedPayload = Buffer.concat([cipher.update(request), cipher.final(), cipher.getAuthTag()]);
    const encoded = proto.EncryptedPairingRequest.encode({ encryptedPayload, iv }).finish();
    return this.query("set", element("encrypted_pairing_request", {}, encoded));
  }

  /** What the phone signed, as it came with pair-success. */
  get signed(): proto.ADVSignedDeviceIdentityHMAC | null {
    const success = this.received.map((stanza) => child(stanza, "pair-success")).find((found) => found);
    return success ? proto.ADVSignedDeviceIdentityHMAC.decode(bytesOf(child(success, "device-identity"))) : null;
  }

  /** Which of the phone's companions it is, counted from 1. */
  get keyIndex(): number {
    const { details } = proto.ADVSignedDeviceIdentity.decode(this.signed!.details!);
    return proto.ADVDeviceIdentity.decode(details!).keyIndex!;
  }

  /** Whether pair-success came, with an identity that the phone signed for this companion's newest secret. */
  linked(): boolean {
    if (!this.signed) return false;
    const { details, hmac } = this.signed;
    assert.deepEqual(
      Buffer.from(hmac!),
      createHmac("sha256", this.advSecret).update(details!).digest(),
      "the identity is not signed for the newest secret",
    );
    return true;
  }

  close(): void {
    this.#registration.onClose();
  }
}

function hkdf(input: Uint8Array, salt: string, info: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", input, salt, info, 32));
}

function errorOf(answer: BinaryNode): string | undefined {
  return child(answer, "error")?.attrs.code;
}

/** Lets promises that are due settle. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

Deno.test("with a handoff proof the companion is linked once the owner has signed, without comparing codes", async () => {
  const { phone, companion, account } = scene();
  const line = companion();
  assert.deepEqual(await phone.scan(line.qr), { kind: "passkey" });
  assert.deepEqual(phone.passkeyState(), { stage: "required", code: null });
  const { request, options } = line;
  assert.deepEqual([request.attrs.from, request.tag], ["@s.whatsapp.net", "notification"]);
  assert.deepEqual({ ...options, challenge: "" }, {
    challenge: "",
    timeout: LIFETIME_MS,
    rpId: "whatsapp.com",
    allowCredentials: [{ id: account.passkey!.credential.id, type: "public-key", transports: ["internal", "hybrid"] }],
    userVerification: "required",
  });
  assert.equal(Buffer.from(options.challenge, "base64url").length, 32);
  assert.equal((await line.prologue(phone.signPasskey(options))).attrs.type, "result");
  assert.deepEqual([line.primary.publicKey?.length, line.primary.nonce?.length], [32, 32]);
  assert.equal((await line.reveal()).attrs.type, "result");
  assert.deepEqual(phone.passkeyState(), { stage: "confirmed", code: line.code });
  assert.equal((await line.hand()).attrs.type, "result");
  await turn();
  assert.ok(line.linked());
  assert.equal(phone.passkeyState(), null);
});

Deno.test("reading the QR of a companion linked by passkey again does not count as another companion", async () => {
  const { phone, companion } = scene();
  const lines = [companion(), companion()];
  for (const line of lines) {
    await phone.scan(line.qr);
    await line.prologue(phone.signPasskey(line.options));
    await line.reveal();
    await line.hand();
    await turn();
    assert.equal((await phone.scan(line.qr)).kind, "linked");
    assert.equal((await phone.scan(line.qr)).kind, "linked");
  }
  assert.deepEqual(lines.map(({ keyIndex }) => keyIndex), [1, 2]);
});

Deno.test("without a handoff proof the companion is linked only after the owner has compared the codes", async () => {
  const { phone, companion } = scene();
  const line = companion();
  await phone.scan(line.qr);
  await line.prologue(phone.signPasskey(line.options), { proof: false });
  await line.reveal();
  assert.deepEqual(phone.passkeyState(), { stage: "confirm", code: line.code });
  assert.match(line.code, /^[1-9A-HJ-NP-TV-Z]{4}-[1-9A-HJ-NP-TV-Z]{4}$/);
  await line.hand();
  await turn();
  assert.ok(!line.linked());
  phone.confirmPasskey();
  await turn();
  assert.ok(line.linked());
});

Deno.test("request options that do not come with the notification can be queried", async () => {
  const { phone, companion } = scene({ query: true });
  const line = companion();
  await phone.scan(line.qr);
  assert.equal(line.request.content?.length, 0);
  const answer = await line.query("get", element("passkey_request_options"));
  const options = JSON.parse(textOf(child(answer, "passkey_request_options")));
  assert.equal((await line.prologue(phone.signPasskey(options))).attrs.type, "result");
});

/** Assertions that are not the owner's answer to the challenge, made from the right one. */
const FORGERIES: Record<
  string,
  (right: ReturnType<Phone["signPasskey"]>, phone: Phone) => ReturnType<Phone["signPasskey"]>
> = {
  "another challenge": (_, phone) =>
    phone.signPasskey({ challenge: randomBytes(32).toString("base64url"), rpId: "whatsapp.com" }),
  "another page's origin": (_, phone) => forge(phone, { origin: "https://web.whatsapp.com.example.org" }),
  "another relying party": (_, phone) => forge(phone, { rpId: "example.org" }),
  "an owner who was not verified": (_, phone) => forge(phone, { flags: 0x01 }),
  "nobody present": (_, phone) => forge(phone, { flags: 0x04 }),
  "a registration in place of a login": (_, phone) => forge(phone, { type: "webauthn.create" }),
  "a damaged signature": (right) => {
    const signature = Buffer.from(right.response.signature, "base64url");
    signature[signature.length - 1]! ^= 1;
    return { ...right, response: { ...right.response, signature: signature.toString("base64url") } };
  },
  "a signature by another key": (_, phone) => forge(phone, { key: scene().phone.exportPasskey().privateKey }),
  "another credential": (right) => ({ ...right, id: "AAAA", rawId: "AAAA" }),
};

/** An assertion in which one thing is wrong, rightly signed over that. */
function forge(
  phone: Phone,
  change: { origin?: string; rpId?: string; flags?: number; type?: string; key?: Uint8Array },
): ReturnType<Phone["signPasskey"]> {
  const { credentialId, privateKey } = phone.exportPasskey();
  const challenge = forgedChallenge;
  const { origin = "https://web.whatsapp.com", rpId = "whatsapp.com", flags = 5, type = "webauthn.get" } = change;
  const clientData = Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));
  const sha256 = (bytes: Uint8Array | string) => createHash("sha256").update(bytes).digest();
  const authenticatorData = Buffer.concat([sha256(rpId), Buffer.of(flags, 0, 0, 1, 0)]);
  const key = createPrivateKey({ key: Buffer.from(change.key ?? privateKey), format: "der", type: "pkcs8" });
  const signature = createSign("sha256").update(authenticatorData).update(sha256(clientData)).sign(key);
  return {
    id: credentialId,
    rawId: credentialId,
    type: "public-key",
    authenticatorAttachment: "platform",
    response: {
      clientDataJSON: clientData.toString("base64url"),
      authenticatorData: authenticatorData.toString("base64url"),
      signature: signature.toString("base64url"),
      userHandle: "",
    },
    clientExtensionResults: {},
  };
}
let forgedChallenge = "";

Deno.test("a valid assertion passes, however it was made", async () => {
  const { phone, companion } = scene();
  const line = companion();
  await phone.scan(line.qr);
  forgedChallenge = line.options.challenge;
  assert.equal((await line.prologue(forge(phone, {}))).attrs.type, "result");
});

for (const [what, make] of Object.entries(FORGERIES)) {
  Deno.test(`an assertion with ${what} is refused, and the next one passes`, async () => {
    const { phone, companion } = scene();
    const line = companion();
    await phone.scan(line.qr);
    forgedChallenge = line.options.challenge;
    assert.equal(errorOf(await line.prologue(make(phone.signPasskey(line.options), phone))), "401");
    assert.equal(line.requests, 2);
    assert.notEqual(line.options.challenge, forgedChallenge);
    assert.equal((await line.prologue(phone.signPasskey(line.options))).attrs.type, "result");
    await line.reveal();
    // The secret in the QR is two requests old: the proof says nothing any more, so codes are compared.
    assert.deepEqual(phone.passkeyState(), { stage: "confirm", code: line.code });
    phone.confirmPasskey();
    await line.hand();
    await turn();
    assert.ok(line.linked());
  });
}

Deno.test("an expired challenge is refused, and a new one is issued", async () => {
  const { runtime, phone, companion } = scene();
  const line = companion();
  await phone.scan(line.qr);
  const assertion = phone.signPasskey(line.options);
  await runtime.clock.advance(LIFETIME_MS);
  assert.equal(phone.passkeyState(), null);
  assert.equal(errorOf(await line.prologue(assertion)), "410");
  assert.equal((await line.prologue(phone.signPasskey(line.options))).attrs.type, "result");
});

Deno.test("a companion that acknowledges nothing is not linked", async () => {
  const { phone, companion } = scene();
  const line = companion();
  line.acknowledges = false;
  await phone.scan(line.qr);
  assert.equal(errorOf(await line.prologue(phone.signPasskey(line.options))), "406");
});

for (
  const [what, change] of Object.entries({
    "another ref": { ref: "2@another" },
    "a short key": { publicKey: new Uint8Array(31) },
    "a short commitment": { commitment: new Uint8Array(31) },
  })
) {
  Deno.test(`a prologue with ${what} is refused`, async () => {
    const { phone, companion } = scene();
    const line = companion();
    await phone.scan(line.qr);
    await line.fetchRef();
    const payload = line.payload(change);
    assert.equal(errorOf(await line.prologue(phone.signPasskey(line.options), { payload })), "400");
  });
}

Deno.test("a nonce that does not match the commitment ends the exchange", async () => {
  const { phone, companion } = scene();
  const line = companion();
  await phone.scan(line.qr);
  await line.prologue(phone.signPasskey(line.options));
  assert.equal(errorOf(await line.reveal(randomBytes(32))), "401");
  assert.deepEqual(phone.passkeyState(), { stage: "required", code: null });
  assert.equal(line.requests, 2);
});

Deno.test("a request encrypted with another key, or of another companion, ends the exchange", async () => {
  for (const change of [{ key: randomBytes(32) }, { identity: randomBytes(32) }]) {
    const { phone, companion } = scene();
    const line = companion();
    await phone.scan(line.qr);
    await line.prologue(phone.signPasskey(line.options));
    await line.reveal();
    assert.equal(errorOf(await line.hand(change)), "401");
    await turn();
    assert.ok(!line.linked());
  }
});

Deno.test("steps out of order are refused", async () => {
  const { phone, companion } = scene();
  const line = companion();
  assert.equal(errorOf(await line.query("get", element("ref"))), "401");
  await phone.scan(line.qr);
  assert.equal(errorOf(await line.reveal()), "400");
  assert.equal(errorOf(await line.query("set", element("encrypted_pairing_request", {}, Buffer.of(1)))), "400");
});

Deno.test("a second device waits until the first one's exchange is over", async () => {
  const { phone, companion } = scene();
  const [first, second] = [companion(), companion()];
  await phone.scan(first.qr);
  await first.prologue(phone.signPasskey(first.options), { proof: false });
  await first.reveal();
  await phone.scan(second.qr);
  assert.equal(errorOf(await second.prologue(phone.signPasskey(second.options))), "409");
  first.close();
  assert.equal((await second.prologue(phone.signPasskey(second.options))).attrs.type, "result");
  assert.ok(!first.linked());
});

Deno.test("a signature links nothing once the companion has asked for a code for another number", async () => {
  const { runtime, network, phone, companion } = scene();
  network.directory.open("4915100000002", { name: "Other", random: runtime.random });
  const line = companion();
  await phone.scan(line.qr);
  await line.prologue(phone.signPasskey(line.options), { proof: false });
  await line.reveal();
  await line.hand();
  await line.askForCode("4915100000002");
  assert.equal(phone.passkeyState(), null);
  assert.throws(() => phone.confirmPasskey(), { code: "not_found" });
  await turn();
  assert.ok(!line.linked());
  line.close();
});

Deno.test("a second scan leaves the first one's code visible, and its owner can confirm it", async () => {
  const { phone, companion } = scene();
  const [first, second] = [companion(), companion()];
  await phone.scan(first.qr);
  await first.prologue(phone.signPasskey(first.options), { proof: false });
  await first.reveal();
  await first.hand();
  await phone.scan(second.qr);
  assert.deepEqual(phone.passkeyState(), { stage: "confirm", code: first.code });
  phone.confirmPasskey();
  await turn();
  assert.ok(first.linked());
  assert.deepEqual(phone.passkeyState(), { stage: "required", code: null });
  await second.prologue(phone.signPasskey(second.options), { proof: false });
  await second.reveal();
  assert.deepEqual(phone.passkeyState(), { stage: "confirm", code: second.code });
  second.close();
  assert.equal(phone.passkeyState(), null);
});

Deno.test("during one owner's exchange no other phone can link the companion", async () => {
  const { phone, companion, secondPhone } = scene();
  const other = secondPhone("4915100000002");
  const line = companion();
  await phone.scan(line.qr);
  await line.prologue(phone.signPasskey(line.options), { proof: false });
  await line.reveal();
  await line.hand();
  assert.deepEqual(await other.scan(line.qr), { kind: "unknown_ref" });
  phone.confirmPasskey();
  await turn();
  assert.ok(line.linked());
  line.close();
});

Deno.test("before its owner has signed, a phone loses the companion to one that links it at once", async () => {
  const { phone, companion, secondPhone } = scene();
  const other = secondPhone("4915100000002");
  const line = companion();
  await phone.scan(line.qr);
  assert.equal((await other.scan(line.qr)).kind, "linked");
  assert.equal(phone.passkeyState(), null);
  line.close();
});

Deno.test("after five refusals the phone has to scan the QR again", async () => {
  const { phone, companion } = scene();
  const line = companion();
  await phone.scan(line.qr);
  const stale = phone.signPasskey({ challenge: "AAAA", rpId: "whatsapp.com" });
  for (let i = 0; i < 5; i++) assert.equal(errorOf(await line.prologue(stale)), "401");
  assert.equal(line.requests, 5);
  assert.equal(phone.passkeyState(), null);
  await phone.scan(line.qr);
  assert.equal((await line.prologue(phone.signPasskey(line.options))).attrs.type, "result");
});

Deno.test("the owner's browser signs only for whatsapp.com, and only with the account's passkey", () => {
  const { phone } = scene();
  const challenge = "AAAA";
  const other = [{ id: "BBBB", type: "public-key" }];
  assert.throws(() => phone.signPasskey({ challenge, rpId: "example.org" }), /options.rpId/);
  assert.throws(
    () => phone.signPasskey({ challenge, rpId: "whatsapp.com", allowCredentials: other }),
    /allowCredentials/,
  );
  assert.throws(() => phone.signPasskey({ rpId: "whatsapp.com" }), /options.challenge/);
  assert.throws(() => phone.signPasskey(null), /options/);
});
