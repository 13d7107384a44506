/**
 * The index of chats against a naive model: what people and the line do in any order, with crashes, a second process
 * and pages of any size.
 */
import assert from "node:assert/strict";
import { backfillChats } from "../../../src/line/chat_backfill.ts";
import { EMPTY_LEDGER } from "../../../src/message/history/ledger.ts";
import { messageKeys } from "../../../src/message/rows.ts";
import { Change, type Kv, StoreError } from "../../../src/store/kv.ts";
import { testBell } from "../../support/bell.ts";
import { chatKeys, isSent } from "../../../src/chat/rows.ts";
import { eraseSaid } from "../../../src/chat/sweep.ts";
import { type ChatEntry, ChatHistory } from "../../../src/line/chat_history.ts";
import { lineKeys } from "../../../src/line/rows.ts";
import type { Incoming } from "../../../src/whatsapp/incoming.ts";
import { Traces } from "../../../src/whatsapp/person.ts";
import { chatsOn } from "../../support/chats.ts";
import { plainIncoming } from "../../support/incoming.ts";
import { ACCOUNT, connectedWorld, type World } from "../../support/line_world.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { testRuntime } from "../../support/runtime.ts";

const LINE = { lineId: "ses_1", accountId: ACCOUNT };
const GROUP = "120363000000000001@g.us";
const SEEDS = 12;
const STEPS = 120;

interface Said {
  id: string;
  mine: boolean;
  text: string | null;
  deleted: boolean;
  reactions: Map<string, string>;
  /** By whom, in a group. */
  by: string | null;
}

interface Chat {
  said: Said[];
  unread: number;
  wrote: boolean;
}

interface Person {
  number: string;
  lid: string;
  /** Whether the network has told that both are the same. */
  isKnown: boolean;
}

/** What happens, done to the line and to the model. */
class Play {
  readonly #world: World;
  readonly #between: (min: number, max: number) => number;
  /** By address; both addresses of a person lead to one chat once they are known. */
  readonly chats = new Map<string, Chat>();
  readonly people: Person[] = [1, 2, 3].map((n) => ({
    number: `3460000010${n}`,
    lid: `90000${n}@lid`,
    isKnown: false,
  }));
  /** Chats in the order of what happened last. */
  readonly recent: Chat[] = [];
  #made = 0;

  constructor(world: World, seed: number) {
    this.#world = world;
    const { random } = testRuntime(seed);
    this.#between = (min, max) => random.between(min, max);
  }

  #pick<T>(among: readonly T[]): T {
    return among[this.#between(0, among.length - 1)]!;
  }

  get history(): ChatHistory {
    // A second process on the same disk.
    const kv = new MemoryKv(this.#world.disk);
    return new ChatHistory({ kv, chats: chatsOn(kv, this.#world.network) });
  }

  /** What does not happen. */
  without: readonly string[] = [];

  async step(): Promise<void> {
    const does = this.#pick([
      () => this.receive(),
      () => this.receive(),
      () => this.receive(),
      () => this.send(),
      () => this.send(),
      () => this.echo(),
      () => this.react(),
      () => this.change(),
      () => this.#unless("read", () => this.read()),
      () => this.#unless("learn", () => this.learn()),
      () => this.#unless("crash", () => this.crash()),
      () => this.#unless("erase", () => this.erase()),
    ]);
    await does();
    // Chats of the same moment have no order.
    await this.#world.clock.advance(this.#between(1, 3));
  }

  async #unless(name: string, run: () => Promise<void>): Promise<void> {
    if (!this.without.includes(name)) await run();
  }

  #chatOf(address: string): Chat {
    const chat = this.chats.get(address) ?? { said: [], unread: 0, wrote: false };
    const person = this.people.find(({ number, lid, isKnown }) => isKnown && [number, lid].includes(address));
    for (const name of person ? [person.number, person.lid] : [address]) this.chats.set(name, chat);
    return chat;
  }

  #say(address: string, said: Pick<Said, "id" | "mine" | "text" | "by">): void {
    const chat = this.#chatOf(address);
    chat.said.unshift({ ...said, deleted: false, reactions: new Map() });
    chat.unread = said.mine ? 0 : chat.unread + 1;
    chat.wrote ||= !said.mine;
    this.#touch(chat);
  }

  #touch(chat: Chat): void {
    const at = this.recent.indexOf(chat);
    if (at >= 0) this.recent.splice(at, 1);
    this.recent.unshift(chat);
  }

  /** Someone's address, and the message as it comes from there. */
  #from(): { address: string; fields: Partial<Incoming> } {
    const person = this.#pick(this.people);
    const way = this.#between(0, 3);
    if (way === 0) return { address: GROUP, fields: { chat: GROUP, participant: person.lid, number: person.number } };
    if (way === 1) {
      const number = person.isKnown ? person.number : null;
      return { address: person.lid, fields: { chat: person.lid, number } };
    }
    return { address: person.number, fields: { chat: `${person.number}@s.whatsapp.net`, number: person.number } };
  }

  #incoming(fields: Partial<Incoming>): Incoming {
    const id = `IN${++this.#made}`;
    const timestamp = Math.floor(this.#world.clock.now() / 1000);
    return plainIncoming({ networkId: id, text: `text ${id}`, timestamp, ...fields });
  }

  async #deliver(message: Incoming): Promise<void> {
    await this.#world.network.of("ses_1").receive(message);
    // The network delivers some twice.
    if (this.#between(0, 4) === 0) await this.#world.network.of("ses_1").receive(message);
  }

  async receive(): Promise<void> {
    const { address, fields } = this.#from();
    const message = this.#incoming(fields);
    await this.#deliver(message);
    const by = address === GROUP ? fields.number ?? null : null;
    this.#say(address, { id: message.networkId, mine: false, text: message.text, by });
  }

  async echo(): Promise<void> {
    const { address, fields } = this.#from();
    const message = this.#incoming({ ...fields, fromMe: true, participant: null, number: null });
    await this.#deliver(message);
    this.#say(address, { id: message.networkId, mine: true, text: message.text, by: null });
  }

  async send(): Promise<void> {
    const { address } = this.#from();
    const { id } = await this.#world.accept("ses_1", { to: address, content: { kind: "text", text: `to ${address}` } });
    await this.#world.clock.advance(10);
    assert.equal((await this.#world.message(id)).status, "sent");
    this.#say(address, { id, mine: true, text: `to ${address}`, by: null });
  }

  /** The other side, or the owner on the phone, reacts to any message of a chat, or takes that back. */
  async react(): Promise<void> {
    const { address, fields } = this.#from();
    const said = this.#pickSaid(address);
    if (!said) return;
    const fromMe = this.#between(0, 1) === 0;
    const emoji = this.#pick(["👍", "❤️", ""]);
    const messageId = await this.#networkId(said.id);
    const details = { target: { messageId, fromMe: said.mine } };
    await this.#deliver(this.#incoming({
      ...fields,
      ...(fromMe ? { fromMe, participant: null, number: null } : {}),
      type: "reactionMessage",
      text: emoji || null,
      details,
    }));
    const by = fromMe ? "me" : fields.number ?? address;
    if (emoji) said.reactions.set(by, emoji);
    else said.reactions.delete(by);
  }

  /** The author edits or deletes a message. */
  async change(): Promise<void> {
    const { address, fields } = this.#from();
    const said = this.#pickSaid(address);
    if (!said || said.mine || address === GROUP || said.deleted) return;
    const isEdit = this.#between(0, 1) === 0;
    const target = said.id;
    const change = isEdit
      ? { kind: "edited" as const, target, text: `new ${target}` }
      : { kind: "deleted" as const, target, byAdmin: false };
    // It comes from the address that the message came from.
    const from = await this.#seenAt(address, target);
    await this.#deliver(this.#incoming({ ...fields, chat: from, change }));
    if (isEdit) said.text = `new ${target}`;
    else Object.assign(said, { text: null, deleted: true });
  }

  async #seenAt(address: string, id: string): Promise<string> {
    const person = this.people.find(({ number, lid }) => number === address || lid === address)!;
    const { value } = await this.#world.kv.get(lineKeys.seen("ses_1", person.lid, id));
    return value === null ? `${person.number}@s.whatsapp.net` : person.lid;
  }

  #pickSaid(address: string): Said | null {
    const { said } = this.chats.get(address) ?? { said: [] };
    return said.length === 0 ? null : this.#pick(said);
  }

  async #networkId(id: string): Promise<string> {
    return id.startsWith("msg_") ? (await this.#world.message(id)).networkId : id;
  }

  /** Another process, or the phone, marks a chat as read, beside a message that comes. */
  async read(): Promise<void> {
    const { address, fields } = this.#from();
    const chat = this.chats.get(address);
    if (!chat) return;
    if (this.#between(0, 1) === 0) {
      const kv = new MemoryKv(this.#world.disk);
      const other = this.#incoming({ chat: "34600000999@s.whatsapp.net", number: "34600000999" });
      await Promise.all([chatsOn(kv, this.#world.network).read(LINE, address), this.#deliver(other)]);
      this.#say("34600000999", { id: other.networkId, mine: false, text: other.text, by: null });
      chat.unread = 0;
      return;
    }
    const seen = this.#pickSaid(address);
    if (!seen || seen.mine) return;
    await this.#world.network.of("ses_1").events.notice({
      kind: "read",
      id: null,
      chat: fields.chat!,
      networkIds: [seen.id],
    });
    const newer = chat.said.slice(0, chat.said.indexOf(seen)).filter(({ mine }) => !mine).length;
    chat.unread = Math.min(chat.unread, newer);
  }

  /** The network tells that number and LID are one person, with a message that names both. */
  async learn(): Promise<void> {
    const person = this.#pick(this.people);
    if (person.isKnown) return;
    person.isKnown = true;
    const { number, lid } = person;
    this.#world.network.numbers.set(lid, number);
    const [one, other] = [this.chats.get(number), this.chats.get(lid)];
    const message = this.#incoming({ chat: lid, number });
    await this.#deliver(message);
    const said = await this.#inOrder([...one?.said ?? [], ...other?.said ?? []]);
    const wrote = (one?.wrote ?? false) || (other?.wrote ?? false);
    const chat: Chat = { said, unread: (one?.unread ?? 0) + (other?.unread ?? 0), wrote };
    for (const old of [one, other]) if (old) this.recent.splice(this.recent.indexOf(old), 1);
    this.chats.set(number, chat);
    this.chats.set(lid, chat);
    this.#say(lid, { id: message.networkId, mine: false, text: message.text, by: null });
  }

  /** Two chats become one in the order in which their messages were kept. */
  async #inOrder(said: Said[]): Promise<Said[]> {
    const orders = new Map<string, number>();
    for await (const { key, value } of this.#world.kv.list({ prefix: chatKeys.messagesOfLine("ses_1") })) {
      orders.set(isSent(value) ? value.messageId : value.id, Number(key.at(-1)));
    }
    return said.sort((a, b) => orders.get(b.id)! - orders.get(a.id)!);
  }

  /** The process dies while a message is kept, and the network delivers it again. */
  async crash(): Promise<void> {
    const { address, fields } = this.#from();
    const message = this.#incoming(fields);
    this.#world.kv.commitsLeft = this.#between(0, 3);
    this.#world.network.of("ses_1").receive(message).catch(() => {});
    await this.#world.clock.advance(1);
    this.#world.crash();
    await this.#world.boot();
    await this.#world.clock.advance(100);
    await this.#world.network.of("ses_1").receive(message);
    const by = address === GROUP ? fields.number ?? null : null;
    this.#say(address, { id: message.networkId, mine: false, text: message.text, by });
  }

  async erase(): Promise<void> {
    if (this.#between(0, 3) > 0) return;
    const person = this.#pick(this.people);
    const traces = new Traces({ number: person.number, lids: [person.lid] });
    let at = null;
    do {
      const { change, next } = await eraseSaid(this.#world.kv, LINE, { traces, at });
      await this.#world.kv.commit(change);
      at = next;
    } while (at !== null);
    for (const address of [person.number, person.lid]) {
      const chat = this.chats.get(address);
      if (chat && this.recent.includes(chat)) this.recent.splice(this.recent.indexOf(chat), 1);
      this.chats.delete(address);
    }
    for (const chat of this.recent) {
      for (const said of chat.said) for (const by of [person.number, person.lid]) said.reactions.delete(by);
    }
    const group = this.chats.get(GROUP);
    if (group) group.said = group.said.filter(({ by }) => by !== person.number);
  }

  /** Compares the lists and all pages with the model. */
  async check(): Promise<void> {
    const { history } = this;
    const addresses = new Map(this.recent.map((chat) => [
      chat,
      [...this.chats].filter(([, other]) => other === chat).map(([address]) => address),
    ]));
    for (const only of ["", "unread", "wrote"]) {
      const listed = [];
      let after: string | null = null;
      do {
        const page = await history.list(LINE, {
          limit: this.#between(1, 4),
          after,
          q: null,
          unread: only === "unread",
          wrote: only === "wrote",
        });
        listed.push(...page.chats);
        after = page.next;
      } while (after !== null);
      const expected = this.recent.filter(({ unread, wrote }) =>
        only === "" || (only === "unread" ? unread > 0 : wrote)
      );
      assert.deepEqual(listed.map(({ record }) => record.unread), expected.map(({ unread }) => unread));
      for (const [i, { record, newest }] of listed.entries()) {
        assert.ok(addresses.get(expected[i]!)!.includes(record.chat), `${record.chat} at ${i}`);
        const [first] = expected[i]!.said;
        if (newest) assert.equal(idOf(newest), first!.id);
      }
    }
    for (const [chat, names] of addresses) {
      for (const name of names) {
        const entries: ChatEntry[] = [];
        let before: string | null = null;
        do {
          const page = await history.messages(LINE, name, { limit: this.#between(1, 7), before, after: null });
          entries.push(...page.entries);
          before = page.next;
        } while (before !== null);
        assert.deepEqual(
          entries.map(viewOf),
          chat.said.map(({ id, text, deleted, reactions }) => ({
            id,
            text,
            deleted,
            reactions: Object.fromEntries(reactions),
          })),
        );
      }
    }
  }
}

function idOf({ row }: ChatEntry): string {
  return isSent(row) ? row.messageId : row.id;
}

function viewOf(entry: ChatEntry) {
  const { row, message } = entry;
  const text = message?.content.kind === "text" ? message.content.text : isSent(row) ? null : row.text;
  const deleted = !isSent(row) && row.deletedAt !== undefined;
  return { id: idOf(entry), text, deleted, reactions: { ...row.reactions } };
}

/** What an older version left: the same, without the index and what refers to it. */
async function forgetIndex(world: World): Promise<void> {
  const { kv } = world;
  const change = new Change();
  for (const prefix of [chatKeys.messagesOfLine("ses_1"), chatKeys.recordsOfLine("ses_1"), chatKeys.places("ses_1")]) {
    for await (const { key } of kv.list<unknown>({ prefix })) change.delete(key);
  }
  const ids: string[] = [];
  for await (const { key, value } of kv.list({ prefix: messageKeys.messages() })) {
    const { chatOrder: _, ...message } = value;
    change.set(key, message);
    ids.push(value.id);
  }
  for await (const { key, value } of kv.list({ prefix: lineKeys.seenOfLine("ses_1") })) {
    change.set(key, typeof value === "number" ? Math.floor(value) : value);
  }
  const ledger = { ...EMPTY_LEDGER, messages: ids.length, openBlock: ids };
  change.set(messageKeys.ledger(ACCOUNT), ledger);
  change.set(chatKeys.backfill(ACCOUNT), { step: "sent", upTo: ids.length });
  assert.ok(await kv.commit(change));
}

for (let seed = 1; seed <= 4; seed++) {
  Deno.test(`older data is indexed as the model has it, killed at any commit, while more is said (${seed})`, async () => {
    const world = await connectedWorld({ seed });
    const play = new Play(world, seed);
    play.without = ["erase", "crash", "read", "learn"];
    for (let i = 0; i < STEPS; i++) await play.step();
    await forgetIndex(world);
    for (const chat of play.recent) chat.unread = 0;
    const { kv } = world;
    const { random } = testRuntime(seed);
    let kills = 0;
    const dying: Kv = {
      ...kv,
      mostChecks: kv.mostChecks,
      get: (key) => kv.get(key),
      getMany: (keys) => kv.getMany(keys),
      list: (...asked) => kv.list(...asked),
      commit(change) {
        if (random.between(1, 10) > 1) return kv.commit(change);
        kills++;
        return Promise.reject(new StoreError("unavailable", "killed"));
      },
    };
    const isLeft = async () => (await kv.get(chatKeys.backfill(ACCOUNT))).value !== null;
    for (let turn = 0; await isLeft(); turn++) {
      assert.ok(turn < 200, "it comes to an end");
      const deps = {
        kv: dying,
        chats: chatsOn(dying, world.network),
        runtime: world.runtime,
        bell: testBell(world.runtime),
      };
      const run = backfillChats(deps, new AbortController().signal).catch(() => 0);
      await play.receive();
      for (let i = 0; i < 50; i++) await world.clock.advance(100);
      await run;
    }
    assert.ok(kills > 0);
    await play.check();
  });
}

for (let seed = 1; seed <= SEEDS; seed++) {
  Deno.test(`lists and pages of chats are as a naive model has them, whatever happens (${seed})`, async () => {
    const world = await connectedWorld({ seed });
    const play = new Play(world, seed);
    for (let i = 0; i < STEPS; i++) {
      await play.step();
      if (i % 10 === 9) await play.check();
    }
    await play.check();
  });
}
