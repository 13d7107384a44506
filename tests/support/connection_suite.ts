/**
 * The contract of the port in `src/whatsapp/`, for any engine: each test runs on a simulated network of its own, with
 * phones as witnesses. A factory opens the engine; the suite's clock moves only when told.
 */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { Buffer } from "node:buffer";
import pino from "pino";
import { Change, type Kv } from "../../src/store/kv.ts";
import { makeIds, type Runtime, systemRandom, systemRuntime } from "../../src/runtime.ts";
import type { InboxItem } from "../../src/sandbox/phone/inbox.ts";
import type { Phone } from "../../src/sandbox/phone/phone.ts";
import { type SandboxNetwork, startNetwork } from "../../src/sandbox/network.ts";
import { type Connection, NetworkRefusal } from "../../src/whatsapp/connection.ts";
import type { Network } from "../../src/whatsapp/network.ts";
import type { FileBody, Outgoing, OutgoingBody, SendOutcome } from "../../src/whatsapp/outgoing.ts";
import { LeapClock } from "./leap_clock.ts";
import { LineEvents } from "./line_events.ts";
import { confirmedBy, ManualClock } from "./runtime.ts";
import { until } from "./until.ts";

export interface EngineOptions {
  simulated: SandboxNetwork;
  runtime: Runtime;
  /** A folder for this test alone. */
  folder: string;
}

/** Opens the engine under test; called again with the same folder after `close`, it finds what it kept. */
export type OpenEngine = (options: EngineOptions) => Promise<{ network: Network; close(): Promise<void> }>;

const OWNER = "5511900000001";
const FRIEND = "5511900000002";
const LINE = "ses_contract";
/** The simulated network's. */
const CODE_LIFETIME_MS = 180_000;

/** A line's connection, and what it tells. */
interface Opened {
  connection: Connection;
  events: LineEvents;
}

/** One line on one network, with its owner's phone and a friend's. */
export interface Scene {
  simulated: SandboxNetwork;
  clock: ManualClock;
  /** The network's own time: real, but for its leaps. */
  networkClock: LeapClock;
  owner: Phone;
  friend: Phone;
  network: Network;
  folder: string;
  /** Opens the line; the events are recorded. */
  open(options?: { pairingPhone?: string | null; events?: LineEvents }): Promise<Opened>;
  /** Links by QR and logs in. */
  login(): Promise<Opened>;
  /** Closes the engine as a stopped process would, and opens it anew. */
  restart(): Promise<void>;
  /** Waits until the phone has a message that fits. */
  arrival(phone: Phone, fits: (item: InboxItem) => boolean): Promise<InboxItem>;
}

/** Sets the scene, plays it, and clears away whatever happens. */
export async function withScene(
  openEngine: OpenEngine,
  play: (scene: Scene) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "paloma-connection-" });
  const log = pino({ level: "silent" });
  const networkClock = new LeapClock();
  const simulated = await startNetwork({ runtime: { ...systemRuntime(log), clock: networkClock } });
  const clock = new ManualClock(systemRuntime(log).clock.now());
  const runtime: Runtime = {
    clock,
    confirmed: confirmedBy(clock),
    random: systemRandom,
    ids: makeIds(clock, systemRandom),
    log,
  };
  let engine = await openEngine({ simulated, runtime, folder });
  const connections = new Set<Connection>();

  const scene: Scene = {
    simulated,
    clock,
    networkClock,
    folder,
    owner: simulated.addPhone(OWNER, { name: "Olivia" }),
    friend: simulated.addPhone(FRIEND, { name: "Frida" }),
    get network() {
      return engine.network;
    },
    async open({ pairingPhone = null, events = new LineEvents() } = {}) {
      const connection = await engine.network.open(
        { lineId: LINE, accountId: "acc_1", pairingPhone, restriction: null, proxy: null },
        events,
      );
      connections.add(connection);
      return { connection, events };
    },
    async login() {
      const { events } = await scene.open({ events: scanning(scene.owner) });
      await events.until("closed");
      const line = await scene.open();
      await line.events.until("open");
      return line;
    },
    async restart() {
      await Promise.all([...connections].map((connection) => connection.close()));
      connections.clear();
      await engine.close();
      engine = await openEngine({ simulated, runtime, folder });
    },
    arrival: (phone, fits) =>
      until(async () => {
        await phone.idle();
        return phone.inbox().find(fits);
      }, `a message that fits ${fits}`),
  };
  try {
    await play(scene);
  } finally {
    await Promise.all([...connections].map((connection) => connection.close()));
    await engine.close();
    await simulated.close();
    await Deno.remove(folder, { recursive: true });
  }
}

/** Events of a line whose owner looks at the screen and scans whatever QR is shown. */
export function scanning(phone: Phone): LineEvents {
  const events = new LineEvents();
  events.onQr = (text) => void phone.scan(text);
  return events;
}

function unaborted(): AbortSignal {
  return new AbortController().signal;
}

/** Prepares a message and lets it leave at once; with a store, what is to be on disk by then is. */
export async function send(
  connection: Connection,
  message: Outgoing,
  kv?: Pick<Kv, "commit">,
): Promise<SendOutcome> {
  const prepared = await connection.prepare(message, unaborted());
  if (prepared.kind !== "ready") return prepared;
  const change = new Change();
  prepared.keep(change);
  await kv?.commit(change);
  return await prepared.send();
}

export function text(body: string): OutgoingBody {
  return { kind: "text", text: body };
}

/** Writes bytes and describes them as a body to send. */
async function fileBody(
  folder: string,
  file: {
    kind: "image" | "video" | "audio" | "document";
    filename: string;
    mimetype: string;
    bytes: Uint8Array;
    caption?: string;
  },
): Promise<FileBody> {
  const { kind, filename, mimetype, bytes, caption = null } = file;
  const path = `${folder}/${filename}`;
  await Deno.writeFile(path, bytes);
  return { kind, path, size: bytes.length, filename, mimetype, caption };
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Registers the suite for one engine. */
export function connectionContract(name: string, openEngine: OpenEngine): void {
  const test = (title: string, play: (scene: Scene) => Promise<void>) =>
    Deno.test({
      name: `${name}: ${title}`,
      fn: () => withScene(openEngine, play),
      // The library keeps timers and sockets of its own that end after the test.
      sanitizeOps: false,
      sanitizeResources: false,
    });

  test("a line is linked by QR, through the refresh stage, and then logs in", async (scene) => {
    const { events } = await scene.open({ events: scanning(scene.owner) });
    const { identity } = await events.until("linked");
    const { reason } = await events.until("closed");
    assert.equal(identity.phone, OWNER);
    assert.equal(reason.kind, "restart");
    const qrs = events.of("qr").map(({ text }) => text.split(","));
    assert.equal(qrs.length, 2, "the QR was to be shown again once");
    assert.equal(qrs[0]![0], qrs[1]![0], "with the current ref");
    assert.notEqual(qrs[0]![3], qrs[1]![3], "and a new secret");
    assert.equal(await scene.network.isLinked(LINE), true);
    const again = await scene.open();
    assert.deepEqual((await again.events.until("open")).identity, {
      phone: OWNER,
      lid: scene.owner.lid,
      pushName: identity.pushName,
    });
    assert.deepEqual(again.events.of("qr"), []);
  });

  test("the secret of the last refresh is in every later QR", async (scene) => {
    const first = await scene.open();
    const { text: shown } = await first.events.until("qr");
    await scene.owner.scan(shown);
    const refreshed = await first.events.until("qr", ({ text }) => text !== shown);
    await scene.clock.advance(60_000);
    const later = await first.events.until("qr", ({ text }) => text !== shown && text !== refreshed.text);
    const [ref, , , secret] = later.text.split(",");
    assert.notEqual(ref, refreshed.text.split(",")[0]);
    assert.equal(secret, refreshed.text.split(",")[3]);
    assert.equal((await scene.owner.scan(later.text)).kind, "linked");
    await first.events.until("linked");
  });

  test("a QR that nobody scans ends as link_expired", async (scene) => {
    const { events } = await scene.open();
    await events.until("qr");
    await scene.clock.advance(160_000);
    assert.equal((await events.until("closed")).reason.kind, "link_expired");
    assert.equal(events.of("qr").length, 6);
    assert.equal(await scene.network.isLinked(LINE), false);
  });

  test("a line is linked by code", async (scene) => {
    const { events } = await scene.open({ pairingPhone: OWNER });
    const { code } = await events.until("pairingCode");
    assert.match(code, /^[A-Z0-9]{8}$/);
    // Longer than all QR refs live.
    for (let passed = 0; passed < 170_000; passed += 30_000) await scene.clock.advance(30_000);
    assert.deepEqual(events.of("closed"), []);
    assert.equal((await scene.owner.enterCode(code)).kind, "linked");
    assert.equal((await events.until("closed")).reason.kind, "restart");
    assert.deepEqual(events.of("qr"), []);
    await (await scene.open()).events.until("open");
  });

  test("a code that has run out is replaced when the network asks for it", async (scene) => {
    const { events } = await scene.open({ pairingPhone: OWNER });
    const { code } = await events.until("pairingCode");
    scene.networkClock.leap(CODE_LIFETIME_MS);
    const next = await events.until("pairingCode", (reported) => reported.code !== code);
    assert.equal((await scene.owner.enterCode(next.code)).kind, "linked");
    await events.until("linked");
  });

  test("a text is sent when the network acknowledged it, and arrives under its id", async (scene) => {
    const { connection, events } = await scene.login();
    const outcome = await send(connection, {
      networkId: "3EB0A1",
      to: FRIEND,
      body: text("Olá 👋 see https://127.0.0.1/x"),
    });
    assert.equal(outcome.kind, "sent");
    // A number whose LID is known is written to by that.
    if (outcome.kind === "sent") assert.match(outcome.chat, new RegExp(`^(${FRIEND}@s\\.whatsapp\\.net|\\d+@lid)$`));
    const item = await scene.arrival(scene.friend, ({ id }) => id === "3EB0A1");
    assert.equal(item.text, "Olá 👋 see https://127.0.0.1/x");
    const delivered = await events.until("receipt");
    assert.equal(delivered.receipt.networkId, "3EB0A1");
    assert.equal(delivered.receipt.status, "delivered");
    assert.equal(delivered.receipt.participant, null);
    scene.friend.read("3EB0A1");
    await events.until("receipt", ({ receipt }) => receipt.status === "read" && receipt.networkId === "3EB0A1");
  });

  test("the same message sent again under its id arrives once", async (scene) => {
    const { connection } = await scene.login();
    const message = { networkId: "3EB0A2", to: FRIEND, body: text("once") };
    assert.equal((await send(connection, message)).kind, "sent");
    assert.equal((await send(connection, message)).kind, "sent");
    const item = await scene.arrival(scene.friend, ({ id }) => id === "3EB0A2");
    assert.equal(item.copies, 1);
  });

  test("a number without an account is refused for good", async (scene) => {
    const { connection } = await scene.login();
    const outcome = await send(connection, { networkId: "3EB0A3", to: "5511999999999", body: text("hello") });
    assert.equal(outcome.kind, "refused");
    assert.equal((outcome as Extract<SendOutcome, { kind: "refused" }>).code, "number_not_registered");
    assert.deepEqual(await connection.checkNumber("5511999999999"), {
      exists: false,
      jid: "5511999999999@s.whatsapp.net",
    });
    assert.deepEqual(await connection.checkNumber(FRIEND), { exists: true, jid: `${FRIEND}@s.whatsapp.net` });
  });

  test("a sender who hides the number is answered at the @lid", async (scene) => {
    const { connection, events } = await scene.login();
    await scene.friend.sendMessage({ to: OWNER, text: "guess who", hideNumber: true });
    const { message } = await events.until("message");
    assert.equal(message.chat, scene.friend.lid);
    assert.equal(message.number, FRIEND, "the network tells it when it is asked");
    const outcome = await send(connection, { networkId: "3EB0A4", to: message.chat, body: text("I know you") });
    assert.equal(outcome.kind, "sent");
    assert.equal((await scene.arrival(scene.friend, ({ id }) => id === "3EB0A4")).text, "I know you");
  });

  test("the number behind an @lid is known once the network revealed it", async (scene) => {
    const { connection, events } = await scene.login();
    await send(connection, { networkId: "3EB0A5", to: FRIEND, body: text("hello") });
    await scene.friend.sendMessage({ to: OWNER, text: "guess who", hideNumber: true });
    const { message } = await events.until("message");
    assert.equal(message.chat, scene.friend.lid);
    assert.equal(message.number, FRIEND);
  });

  test("a group is listed with its six fields and gets messages, which its members read", async (scene) => {
    const { switchboard } = scene.simulated;
    const accounts = [OWNER, FRIEND].map((number) =>
      switchboard.directory.resolve(`${number}@s.whatsapp.net`)!.account
    );
    for (const addressing of ["lid", "pn"] as const) {
      switchboard.groupChanges.create({ subject: `Team ${addressing}`, participants: accounts, addressing });
    }
    const { connection, events } = await scene.login();
    const groups = await connection.groups.list();
    assert.deepEqual(groups.map(({ name, size, isAdmin }) => ({ name, size, isAdmin })), [
      { name: "Team lid", size: 2, isAdmin: true },
      { name: "Team pn", size: 2, isAdmin: true },
    ]);
    for (const [i, group] of groups.entries()) {
      assert.match(group.id, /@g\.us$/);
      assert.ok(Math.abs(group.createdAt - scene.clock.now()) < 60_000);
      const outcome = await send(connection, { networkId: `3EB0B${i}`, to: group.id, body: text(`to ${group.name}`) });
      assert.deepEqual(outcome, { kind: "sent", chat: group.id });
      assert.equal((await scene.arrival(scene.friend, ({ id }) => id === `3EB0B${i}`)).chat, group.id);
      const { receipt } = await events.until("receipt", ({ receipt }) => receipt.networkId === `3EB0B${i}`);
      assert.equal(receipt.chat, group.id);
      assert.ok(receipt.participant);
      for (const words of ["first", "second"]) {
        await scene.friend.sendMessage({ to: group.id, text: `${words} in ${group.name}` });
        const { message } = await events.until(
          "message",
          ({ message }) => message.text === `${words} in ${group.name}`,
        );
        assert.equal(message.chat, group.id);
        assert.equal(message.number, FRIEND);
        assert.ok(message.participant);
      }
    }
  });

  test("a group is made, changed and left; each member has a result", async (scene) => {
    const { connection } = await scene.login();
    const { groups } = connection;
    const stranger = "5511999999999";
    const { group, results } = await groups.create("Team", [FRIEND, stranger]);
    assert.deepEqual([group.name, group.size, group.isAdmin], ["Team", 2, true]);
    assert.deepEqual(group.participants.map(({ number }) => number).sort(), [OWNER, FRIEND].sort());
    assert.deepEqual(results.map(({ number, error }) => [number, error?.code ?? null]), [
      [FRIEND, null],
      [stranger, "number_not_registered"],
    ]);
    await groups.change(group.id, { description: "first" });
    await groups.change(group.id, {
      name: "Crew",
      description: "second",
      announce: true,
      locked: true,
      ephemeral: 86_400,
    });
    const { name, description, announce, locked, ephemeral } = await groups.get(group.id);
    assert.deepEqual([name, description, announce, locked, ephemeral], ["Crew", "second", true, true, 86_400]);
    const [again] = await groups.changeMembers(group.id, "add", [scene.friend.lid]);
    assert.deepEqual([again!.number, again!.error?.code], [scene.friend.lid, "already_participant"]);
    const invite = await groups.invite(group.id);
    assert.notEqual(await groups.renewInvite(group.id), invite);
    await groups.leave(group.id);
    await assert.rejects(groups.get(group.id), (error) => error instanceof NetworkRefusal && error.code === 403);
    const isUnknown = (error: unknown) => error instanceof NetworkRefusal && error.code === 404;
    await assert.rejects(groups.get("12345678@g.us"), isUnknown);
    await assert.rejects(groups.change("12345678@g.us", { description: "of none" }), isUnknown);
  });

  test("people are looked up, blocked and shown what the line does; privacy hides, it does not fail", async (scene) => {
    const { connection } = await scene.login();
    const { contacts, chats } = connection;
    const { exists, lid, about, pictureUrl, business } = await contacts.card(FRIEND);
    assert.deepEqual([exists, lid, about, pictureUrl, business], [true, scene.friend.lid, null, null, null]);
    await contacts.block(FRIEND);
    assert.deepEqual(await contacts.blocklist(), [{ jid: scene.friend.lid, number: FRIEND }]);
    await contacts.unblock(FRIEND);
    assert.deepEqual(await contacts.blocklist(), []);
    await contacts.changeProfile({ name: "Shop", about: "open" });
    assert.deepEqual(await contacts.profile(), { name: "Shop", about: "open", username: null, pictureUrl: null });
    await chats.show(scene.friend.jid, "recording");
    await until(() => scene.friend.chatStates().some(({ state }) => state === "recording"));
    assert.deepEqual((await chats.namesOf(scene.friend.jid)).sort(), [scene.friend.jid, scene.friend.lid].sort());
  });

  test("a call is reported once, again when it was not kept, and a closed line refuses what it is asked", async (scene) => {
    const { connection, events } = await scene.login();
    events.onNotice = () => Promise.reject(new Error("not kept"));
    scene.friend.call(OWNER, { video: false });
    const { notice } = await events.until("notice");
    await connection.close();
    const again = await scene.open();
    assert.deepEqual((await again.events.until("notice")).notice, notice);
    await again.connection.close();
    for (const work of [() => again.connection.groups.list(), () => again.connection.contacts.blocklist()]) {
      await assert.rejects(work, NetworkRefusal);
    }
  });
  test("the number of a group's member who hides it is known from the list of members", async (scene) => {
    const { switchboard } = scene.simulated;
    const participants = [OWNER, FRIEND].map((number) => switchboard.directory.account(number)!);
    const { events } = await scene.login();
    for (const addressing of ["lid", "pn"] as const) {
      const { jid: to } = switchboard.groupChanges.create({ subject: "Team", participants, addressing });
      await scene.friend.sendMessage({ to, text: `hello by ${addressing}`, hideNumber: true });
      const { message } = await events.until("message", ({ message }) => message.text === `hello by ${addressing}`);
      assert.equal(message.participant, scene.friend.lid);
      assert.equal(message.number, FRIEND);
    }
  });

  test("a group that the line is not in is refused", async (scene) => {
    const { connection } = await scene.login();
    const outcome = await send(connection, {
      networkId: "3EB0B9",
      to: "120363000000000000@g.us",
      body: text("hello?"),
    });
    assert.equal(outcome.kind, "refused");
  });

  for (const file of FILES) {
    test(`a file sent as ${file.kind} (${file.filename}) arrives whole`, async (scene) => {
      const { connection } = await scene.login();
      const body = await fileBody(scene.folder, file);
      const outcome = await send(connection, { networkId: "3EB0C1", to: FRIEND, body });
      assert.equal(outcome.kind, "sent");
      const item = await scene.arrival(scene.friend, ({ id }) => id === "3EB0C1");
      assert.equal(item.mediaError, null);
      assert.equal(item.type, `${file.kind}Message`);
      assert.equal(item.sha256, sha256(file.bytes));
      assert.equal(item.caption, file.kind === "audio" ? null : file.caption ?? null);
      assert.equal(item.filename, file.kind === "document" ? file.filename : null);
    });
  }

  test("what is prepared is uploaded, and seen as a message only when it is sent", async (scene) => {
    const { connection } = await scene.login();
    const { media, switchboard } = scene.simulated;
    // The two files of the history that every device gets.
    await until(() => media.paths().length === 2);
    const body = await fileBody(scene.folder, FILES[4]);
    const prepared = await connection.prepare({ networkId: "3EB0C4", to: FRIEND, body }, unaborted());
    assert.equal(prepared.kind, "ready");
    assert.equal(media.paths().length, 3);
    // Others may come between, and the file on disk is not needed any more.
    assert.equal((await send(connection, { networkId: "3EB0C5", to: FRIEND, body: text("first") })).kind, "sent");
    await Deno.remove(body.path);
    assert.deepEqual(switchboard.wire.entries(OWNER).map(({ id }) => id), ["3EB0C5"]);
    assert.equal((await prepared.send()).kind, "sent");
    assert.equal((await scene.arrival(scene.friend, ({ id }) => id === "3EB0C4")).sha256, sha256(FILES[4].bytes));
    assert.equal(media.paths().length, 3);
  });

  test("what is prepared leaves without asking the network for keys, to a person and to a group", async (scene) => {
    const { connection } = await scene.login();
    const { switchboard } = scene.simulated;
    const members = [OWNER, FRIEND].map((number) => switchboard.directory.account(number)!);
    const group = switchboard.groupChanges.create({ subject: "Team", participants: members, addressing: "lid" });
    const { takeKeys } = switchboard;
    let asked = 0;
    switchboard.takeKeys = (endpoint) => {
      // The line asks for keys of phones; theirs welcomes it with keys of its own.
      if (endpoint.device === 0) asked++;
      return takeKeys(endpoint);
    };
    for (const [networkId, to] of [["3EB0CA", group.jid], ["3EB0CB", FRIEND]] as const) {
      const prepared = await connection.prepare({ networkId, to, body: text("ready") }, unaborted());
      assert.equal(prepared.kind, "ready");
      asked = 0;
      assert.equal((await prepared.send()).kind, "sent");
      assert.equal(asked, 0);
      await scene.arrival(scene.friend, ({ id }) => id === networkId);
    }
  });

  test("an abort ends an upload, and nothing of it becomes a message", async (scene) => {
    const { connection } = await scene.login();
    const { media, switchboard } = scene.simulated;
    await until(() => media.paths().length === 2);
    switchboard.faults.add(OWNER, "slow_upload", 600_000);
    const body = await fileBody(scene.folder, FILES[4]);
    const unwanted = new AbortController();
    const prepared = connection.prepare({ networkId: "3EB0C6", to: FRIEND, body }, unwanted.signal);
    await until(() => media.paths().length === 3);
    unwanted.abort();
    assert.notEqual((await prepared).kind, "ready");
    assert.equal((await send(connection, { networkId: "3EB0C7", to: FRIEND, body })).kind, "sent");
    assert.deepEqual(switchboard.wire.entries(OWNER).map(({ id }) => id), ["3EB0C7"]);
  });

  test("what was prepared over a connection that ended is held", async (scene) => {
    const { connection } = await scene.login();
    const prepared = await connection.prepare({ networkId: "3EB0C8", to: FRIEND, body: text("late") }, unaborted());
    assert.equal(prepared.kind, "ready");
    await connection.close();
    assert.equal((await prepared.send()).kind, "hold");
    assert.equal(
      (await connection.prepare({ networkId: "3EB0C8", to: FRIEND, body: text("late") }, unaborted())).kind,
      "hold",
    );
    assert.deepEqual(scene.simulated.switchboard.wire.entries(OWNER), []);
  });

  test("a file that is missing on disk can be tried again, and the line lives on", async (scene) => {
    const { connection } = await scene.login();
    const body: OutgoingBody = {
      kind: "document",
      path: `${scene.folder}/nothing.pdf`,
      size: 5,
      filename: "nothing.pdf",
      mimetype: "application/pdf",
      caption: null,
    };
    assert.equal((await send(connection, { networkId: "3EB0C2", to: FRIEND, body })).kind, "retry");
    assert.equal((await send(connection, { networkId: "3EB0C3", to: FRIEND, body: text("still here") })).kind, "sent");
  });

  for (const kind of ["image", "video", "audio", "document", "sticker"] as const) {
    test(`a received ${kind} is downloaded and verified`, async (scene) => {
      const { events } = await scene.login();
      const bytes = Buffer.from(`the bytes of a ${kind} `.repeat(5_000));
      const named = kind === "document" ? { filename: "report.pdf", caption: "see this" } : {};
      await scene.friend.sendMessage({ to: OWNER, file: bytes.toString("base64"), kind, ...named });
      const { message } = await events.until("message");
      assert.equal(message.type, `${kind}Message`);
      assert.equal(message.text, kind === "document" ? "see this" : null);
      assert.equal(message.media?.filename, kind === "document" ? "report.pdf" : null);
      assert.equal(message.media?.size, bytes.length);
      const stream = await message.media!.download(new AbortController().signal);
      assert.equal(sha256(new Uint8Array(await new Response(stream).arrayBuffer())), sha256(bytes));
    });
  }

  test("a text arrives with its sender, name and time", async (scene) => {
    const { events } = await scene.login();
    const { id } = await scene.friend.sendMessage({ to: OWNER, text: "hi there" });
    const { message } = await events.until("message");
    assert.equal(message.networkId, id);
    assert.equal(message.chat, `${FRIEND}@s.whatsapp.net`);
    assert.equal(message.number, FRIEND);
    assert.equal(message.pushName, "Frida");
    assert.equal(message.type, "conversation");
    assert.equal(message.text, "hi there");
    assert.equal(message.fromMe, false);
    assert.ok(Math.abs(message.timestamp * 1000 - scene.clock.now()) < 60_000);
  });

  test("what the owner writes on the phone arrives as the owner's", async (scene) => {
    const { events } = await scene.login();
    await scene.owner.sendMessage({ to: FRIEND, text: "from my phone" });
    const { message } = await events.until("message");
    assert.equal(message.fromMe, true);
    assert.equal(message.chat, `${FRIEND}@s.whatsapp.net`);
    assert.equal(message.number, OWNER);
    assert.equal(message.text, "from my phone");
  });

  test("a peer who writes while being written to reads everything, at once", async (scene) => {
    const { connection, events } = await scene.login();
    const numbers = Array.from({ length: 60 }, (_, i) => i);
    const writing = (async () => {
      for (const i of numbers) await scene.friend.sendMessage({ to: OWNER, text: `from the friend ${i}` });
    })();
    for (const i of numbers) {
      const sent = await send(connection, { networkId: `3EB0AA${i}`, to: FRIEND, body: text(`to the friend ${i}`) });
      assert.equal(sent.kind, "sent");
    }
    await writing;
    for (const i of numbers) await scene.arrival(scene.friend, ({ text }) => text === `to the friend ${i}`);
    await events.until("message", ({ message }) => message.text === "from the friend 59");
    assert.deepEqual(
      events.of("message").map(({ message }) => message.text),
      numbers.map((i) => `from the friend ${i}`),
    );
    assert.equal(scene.simulated.switchboard.wire.entries(OWNER).length, 60, "nothing had to be encrypted again");
  });

  test("a stanza that is delivered twice is one message", async (scene) => {
    const { events } = await scene.login();
    scene.simulated.switchboard.faults.add(OWNER, "duplicate", true);
    await scene.friend.sendMessage({ to: OWNER, text: "twice" });
    await scene.friend.sendMessage({ to: OWNER, text: "once" });
    await events.until("message", ({ message }) => message.text === "once");
    assert.deepEqual(events.of("message").map(({ message }) => message.text), ["twice", "once"]);
  });

  test("a message whose receiver failed is given again, in its place", async (scene) => {
    const { events } = await scene.login();
    let failures = 2;
    events.onMessage = () => failures-- > 0 ? Promise.reject(new Error("disk full")) : Promise.resolve();
    await scene.friend.sendMessage({ to: OWNER, text: "one" });
    await scene.friend.sendMessage({ to: OWNER, text: "two" });
    await events.until("message");
    for (let i = 0; i < 4; i++) await scene.clock.advance(500);
    await events.until("message", ({ message }) => message.text === "two");
    assert.deepEqual(events.of("message").map(({ message }) => message.text), ["one", "one", "one", "two"]);
  });

  test("a message that was not taken before the end is given again after a restart", async (scene) => {
    const { events } = await scene.login();
    events.onMessage = () => new Promise(() => {});
    const { id } = await scene.friend.sendMessage({ to: OWNER, text: "do not lose me" });
    await events.until("message");
    const restarted = scene.restart();
    await scene.clock.advance(5_000);
    await restarted;
    const again = await scene.open();
    const { message } = await again.events.until("message");
    assert.equal(message.networkId, id);
    assert.equal(message.text, "do not lose me");
    await scene.restart();
    const last = await scene.open();
    await last.events.until("open");
    await scene.friend.sendMessage({ to: OWNER, text: "next" });
    assert.equal((await last.events.until("message")).message.text, "next", "it is given once when it was taken");
  });

  test("a dropped line is lost; what it missed arrives once, in order, after the next login", async (scene) => {
    const { events, connection } = await scene.login();
    drop(scene, "drop");
    assert.equal((await events.until("closed")).reason.kind, "lost");
    assert.deepEqual(
      await send(connection, { networkId: "3EB0D1", to: FRIEND, body: text("no") }).then(({ kind }) => kind),
      "hold",
    );
    await assert.rejects(
      connection.checkNumber(FRIEND),
      NetworkRefusal,
    );
    const words = Array.from({ length: 20 }, (_, i) => `missed ${i}`);
    for (const word of words) await scene.friend.sendMessage({ to: OWNER, text: word });
    const again = await scene.open();
    await again.events.until("message", ({ message }) => message.text === words.at(-1));
    assert.deepEqual(again.events.of("message").map(({ message }) => message.text), words);
  });

  test("what comes while the missed messages are taken in does not overtake them", async (scene) => {
    const { events } = await scene.login();
    drop(scene, "drop");
    await events.until("closed");
    const words = Array.from({ length: 60 }, (_, i) => `message ${i}`);
    for (const word of words.slice(0, 40)) await scene.friend.sendMessage({ to: OWNER, text: word });
    const again = await scene.open();
    await again.events.until("open");
    for (const word of words.slice(40)) await scene.friend.sendMessage({ to: OWNER, text: word });
    await again.events.until("message", ({ message }) => message.text === words.at(-1));
    assert.deepEqual(again.events.of("message").map(({ message }) => message.text), words);
  });

  for (const [fault, kind, code] of CLOSES) {
    test(`${fault} by the network closes with ${kind}`, async (scene) => {
      const { events } = await scene.login();
      drop(scene, fault);
      const { reason } = await events.until("closed");
      assert.equal(reason.kind, kind);
      assert.equal(reason.code, code);
      assert.equal(events.of("closed").length, 1);
    });
  }

  test("a line that goes silent is noticed within 60 s", async (scene) => {
    const { events } = await scene.login();
    scene.simulated.switchboard.faults.hold(OWNER, "silence", 120_000);
    await scene.clock.advance(30_000);
    assert.deepEqual(events.of("closed"), []);
    await scene.clock.advance(30_000);
    assert.equal((await events.until("closed")).reason.kind, "lost");
  });

  test("an ack that does not come leaves the outcome unknown", async (scene) => {
    const { connection, events } = await scene.login();
    scene.simulated.switchboard.faults.hold(OWNER, "hold_acks", 600_000);
    const outcome = send(connection, { networkId: "3EB0E1", to: FRIEND, body: text("did you get it?") });
    await scene.arrival(scene.friend, ({ id }) => id === "3EB0E1");
    // The time for the ack begins when the frame is written and its keys are on disk, which knows nothing of this clock.
    let answered = false;
    outcome.then(() => answered = true);
    await until(async () => {
      await scene.clock.advance(1_000);
      // All else is answered: the line does not go silent.
      await connection.checkNumber(FRIEND);
      return answered;
    }, "the end of the time for the ack");
    assert.equal((await outcome).kind, "unknown");
    assert.deepEqual(events.of("closed"), []);
  });

  test("a connection that ends before the ack leaves the outcome unknown", async (scene) => {
    const { connection } = await scene.login();
    scene.simulated.switchboard.faults.hold(OWNER, "hold_acks", 600_000);
    const outcome = send(connection, { networkId: "3EB0E2", to: FRIEND, body: text("and now?") });
    await scene.arrival(scene.friend, ({ id }) => id === "3EB0E2");
    drop(scene, "drop");
    assert.equal((await outcome).kind, "unknown");
  });

  for (const [code, kind] of [["463", "refused"], ["479", "refused"], ["503", "retry"]] as const) {
    test(`an ack with error ${code} is ${kind}`, async (scene) => {
      const { connection } = await scene.login();
      scene.simulated.switchboard.faults.add(OWNER, "nack", code);
      assert.equal((await send(connection, { networkId: "3EB0E3", to: FRIEND, body: text("no?") })).kind, kind);
      assert.equal((await send(connection, { networkId: "3EB0E4", to: FRIEND, body: text("yes") })).kind, "sent");
    });
  }

  test("logout unlinks the device on the network; the line can be linked again", async (scene) => {
    const { connection, events } = await scene.login();
    const account = scene.simulated.switchboard.directory.resolve(`${OWNER}@s.whatsapp.net`)!.account;
    assert.equal(account.companions.size, 1);
    await connection.logout();
    assert.equal((await events.until("closed")).reason.kind, "asked");
    assert.equal(account.companions.size, 0);
    await scene.network.forget(LINE, (message) => events.message(message));
    assert.equal(await scene.network.isLinked(LINE), false);
    await scene.login();
  });

  test("close keeps the link: the next login needs no QR, after a restart too", async (scene) => {
    const { connection, events } = await scene.login();
    await connection.close();
    assert.equal((await events.until("closed")).reason.kind, "asked");
    await scene.restart();
    const again = await scene.open();
    await again.events.until("open");
    assert.deepEqual(again.events.of("qr"), []);
  });

  test("after closed nothing more is reported", async (scene) => {
    const { connection, events } = await scene.login();
    await connection.close();
    const reported = events.all.length;
    await scene.friend.sendMessage({ to: OWNER, text: "too late" });
    await scene.clock.advance(60_000);
    assert.equal(events.all.length, reported);
  });
}

/** What ends a session at the network, the reason it is to be given, and the network's number. */
const CLOSES = [
  ["replace", "replaced", 440],
  ["logout", "logged_out", 401],
  ["restart", "restart", 515],
  ["unavailable", "unavailable", 503],
] as const;

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

const FILES = [
  { kind: "image", filename: "dot.png", mimetype: "image/png", bytes: new Uint8Array(PNG), caption: "a dot" },
  { kind: "video", filename: "clip.mp4", mimetype: "video/mp4", bytes: randomFile(300_000), caption: "look" },
  { kind: "audio", filename: "song.mp3", mimetype: "audio/mpeg", bytes: randomFile(70_000) },
  { kind: "audio", filename: "voice.ogg", mimetype: "audio/ogg", bytes: randomFile(10_000) },
  {
    kind: "document",
    filename: "Rechnung Nr. 7.pdf",
    mimetype: "application/pdf",
    bytes: randomFile(1_000_000),
    caption: "due",
  },
] as const;

function randomFile(length: number): Uint8Array {
  return randomBytes(length);
}

function drop(scene: Scene, kind: "drop" | "replace" | "logout" | "restart" | "unavailable"): void {
  const { switchboard } = scene.simulated;
  switchboard.breakSessions(switchboard.directory.resolve(`${OWNER}@s.whatsapp.net`)!.account, { kind });
}
