/** Lines on a network and a store that tests hold in their hands; a crash keeps the disk, the clock and the network. */
import { chatsOn } from "./chats.ts";
import { Change, type Kv } from "../../src/store/kv.ts";
import { eventKeys } from "../../src/event/rows.ts";
import { lineIdsOf } from "../../src/line/account_lines.ts";
import { makeSessionNames } from "../../src/line/line_row.ts";
import { LINE, lineKeys } from "../../src/line/rows.ts";
import { type Ledger, messageKeys } from "../../src/message/rows.ts";
import { makeEventLog } from "../../src/event/event_log.ts";
import type { EventName, LoggedEvent } from "../../src/event/event.ts";
import type { MediaIngest } from "../../src/media/ingest.ts";
import type { MediaStore } from "../../src/media/store.ts";
import { laneOf } from "../../src/line/chats.ts";
import { type Forecast, makeForecast } from "../../src/line/forecast.ts";
import { makeQueued, type Queued } from "../../src/message/queue_changes.ts";
import type { OutgoingContent } from "../../src/message/content.ts";
import type { Message } from "../../src/message/message.ts";
import type { FetchAttachment } from "../../src/message/fetch_attachment.ts";
import { EMPTY_LEDGER, lastPositionOf } from "../../src/message/history/ledger.ts";
import { enqueue, positionAt, ringQueue } from "../../src/message/queue/place.ts";
import { makeOptOuts, type OptOuts } from "../../src/message/opt_outs.ts";
import { Recorder } from "../../src/message/record.ts";
import { type Line, newLine } from "../../src/line/line.ts";
import { makeLines } from "../../src/line/lines.ts";
import { watchChanges } from "../../src/store/bell.ts";
import { Supervisor } from "../../src/line/supervisor.ts";
import { LineSession } from "../../src/line/line_session.ts";
import { soleHolder } from "../../src/cluster/holder.ts";
import type { Caller } from "../../src/account/account.ts";
import type { Callers } from "../../src/account/callers.ts";
import type { Plan } from "../../src/account/plan.ts";
import { FakeNetwork } from "./fake_network.ts";
import { MemoryDisk, MemoryKv } from "./memory_kv.ts";
import { type TestBell, testBell } from "./bell.ts";
import { aPlan } from "./send_world.ts";
import { settle, type TestRuntime, testRuntime } from "./runtime.ts";

export const ACCOUNT = "acc_1";

export interface WorldOptions {
  delays?: { minMs: number; maxMs: number };
  seed?: number;
  sessions?: number;
  /** Whether other processes write too, so that this one looks every two seconds: true, unless days have to pass. */
  isShared?: boolean;
}

/** What is sealed here is as it was. */
export const SEAL = {
  seal: (plain: Uint8Array) => new Uint8Array(plain),
  open: (sealed: Uint8Array) => new Uint8Array(sealed),
};

export class World {
  readonly runtime: TestRuntime;
  readonly network: FakeNetwork;
  readonly disk = new MemoryDisk();
  readonly removedFiles: string[] = [];
  /** Gives a message that names its file by URL the file, or ends it; called with the file's message. */
  fetchAttachment: FetchAttachment = () => Promise.resolve();
  /** Opens the file of a message; may be changed at any time. */
  onDisk: MediaStore["onDisk"] = (fileId) =>
    Promise.resolve({ path: `/files/${fileId}`, [Symbol.asyncDispose]: () => Promise.resolve() });
  media: MediaIngest = { take: () => Promise.resolve(null) };
  kv!: MemoryKv;
  bell!: TestBell;
  supervisor!: Supervisor;
  lines!: ReturnType<typeof makeLines>;
  queued!: Queued;
  forecast!: Forecast;
  optOuts!: OptOuts;
  /** May be changed at any time. */
  optOutWords: string[] = [];
  /** May be changed at any time. */
  plan: Plan;
  readonly #isShared: boolean;

  constructor({ delays = { minMs: 0, maxMs: 0 }, seed = 1, sessions = 10, isShared = true }: WorldOptions = {}) {
    this.#isShared = isShared;
    this.runtime = testRuntime(seed);
    this.network = new FakeNetwork(this.runtime.clock);
    this.plan = aPlan({ sessions, delayMinMs: delays.minMs, delayMaxMs: delays.maxMs });
  }

  /** Of the one account that there is. */
  get callers(): Pick<Callers, "of"> {
    return { of: () => Promise.resolve({ account: { id: ACCOUNT }, plan: this.plan } as Caller) };
  }

  get clock() {
    return this.runtime.clock;
  }

  /** A process on the disk as it is. */
  async boot(): Promise<void> {
    const kv = this.kv = new MemoryKv(this.disk);
    this.bell = testBell(this.runtime);
    const events = makeEventLog({ kv, bell: this.bell, runtime: this.runtime });
    const files = {
      onDisk: (...asked: Parameters<MediaStore["onDisk"]>) => this.onDisk(...asked),
      remove: (fileId: string) => Promise.resolve(void this.removedFiles.push(fileId)),
    };
    const names = makeSessionNames(kv, this.clock);
    const recorder = new Recorder({
      sessionName: names.of,
      kv,
      chats: chatsOn(kv, this.network),
      runtime: this.runtime,
      events,
      files,
    });
    this.optOuts = makeOptOuts({
      kv,
      clock: this.clock,
      events,
      recorder,
      linesOf: (accountId) => lineIdsOf(kv, accountId),
      chats: chatsOn(kv, this.network),
      wordsOf: () => Promise.resolve(this.optOutWords),
      bell: this.bell,
    });
    const session = (kv: Kv): ConstructorParameters<typeof LineSession>[0] => ({
      kv,
      runtime: this.runtime,
      bell: this.bell,
      events,
      chats: chatsOn(kv, this.network),
      recorder,
      files,
      fetchPreview: () => Promise.resolve(null),
      fetchAttachment: (message, signal) => this.fetchAttachment(message, signal),
      seal: SEAL,
      network: this.network,
      media: this.media,
      lookups: { forget: () => {} },
      plan: () => Promise.resolve(this.plan),
      optOuts: this.optOuts,
      sessionName: names.of,
    });
    let seen = -1;
    const changes = watchChanges({
      hasChanged: () => seen !== (seen = this.disk.commits),
      clock: this.clock,
    });
    if (this.#isShared) await changes.start();
    this.supervisor = new Supervisor({
      kv,
      runtime: this.runtime,
      bell: this.bell,
      changes,
      holder: soleHolder(kv, LINE),
      plansChanged: () => Promise.resolve(false),
      sessions: () => Promise.resolve((store, line, changed) => new LineSession(session(store), line, changed)),
    });
    this.lines = makeLines({
      kv,
      runtime: this.runtime,
      callers: this.callers,
      bell: this.bell,
      claims: null,
      live: this.supervisor,
      seal: SEAL,
      safeFetch: { vetProxy: () => Promise.resolve() },
      names,
    });
    this.queued = makeQueued({
      clock: this.clock,
      kv,
      recorder,
      laneOf: (lineId, chat) => laneOf(kv, lineId, { chat, now: this.clock.now() }),
      bell: this.bell,
    });
    this.forecast = makeForecast({ kv, clock: this.clock, callers: this.callers });
    await this.supervisor.start();
    await settle();
  }

  /** The process dies: what it had in memory is gone, what it still tries reaches neither disk nor network. */
  crash(): void {
    this.kv.commitsLeft = -1;
    this.network.forgetProcess();
    this.bell.deaf = true;
  }

  /** A linked line, as a new data folder would hold it. */
  async addLine(id = "ses_1", fields: Partial<Line> = {}): Promise<Line> {
    const createdAt = this.clock.now();
    const line = {
      ...newLine({ id, accountId: ACCOUNT, name: `line ${id}`, pairingPhone: null, createdAt }),
      linked: true,
      observedGeneration: 1,
      status: "disconnected" as const,
      ...fields,
    };
    if (line.linked) this.network.linked.add(id);
    await new MemoryKv(this.disk).commit(
      new Change().set(lineKeys.line(id), line).set(lineKeys.lineOfAccount(ACCOUNT, createdAt, id), id),
    );
    return line;
  }

  #accepted = 0;

  /** What accept writes. */
  async accept(lineId = "ses_1", fields: Partial<Message> = {}): Promise<Message> {
    const historyNumber = ++this.#accepted;
    const now = this.clock.now();
    const message: Message = {
      id: this.runtime.ids.next("msg"),
      jobId: this.runtime.ids.next("job"),
      accountId: ACCOUNT,
      sessionId: lineId,
      networkId: this.runtime.ids.network(),
      position: positionAt(fields.sendAt ?? now) + historyNumber,
      historyNumber,
      to: "34600000002",
      content: { kind: "text", text: "hello" },
      priority: "normal",
      sendAt: null,
      bulkId: null,
      status: "queued",
      attempts: 0,
      error: null,
      createdAt: now,
      expiresAt: (fields.sendAt ?? now) + 86_400_000,
      sentAt: null,
      deliveredAt: null,
      readAt: null,
      ...fields,
    };
    const change = new Change();
    enqueue(change, [message]);
    const kv = new MemoryKv(this.disk);
    const slot = await kv.get<Ledger>(messageKeys.ledger(ACCOUNT));
    const ledger = slot.value ?? EMPTY_LEDGER;
    change.set(slot.key, { ...ledger, lastPosition: lastPositionOf(ledger, [message]) });
    await kv.commit(change);
    if (this.bell) ringQueue(this.bell, lineId);
    return message;
  }

  /** What the end of a fetch writes. */
  async replaceContent(id: string, content: OutgoingContent): Promise<void> {
    await this.kv.commit(new Change().set(messageKeys.message(id), { ...await this.message(id), content }));
  }

  async message(id: string): Promise<Message> {
    const { value } = await this.#peek().get<Message>(messageKeys.message(id));
    if (!value) throw new Error(`message ${id} is gone`);
    return value;
  }

  async line(id = "ses_1"): Promise<Line> {
    const { value } = await this.#peek().get<Line>(lineKeys.line(id));
    if (!value) throw new Error(`line ${id} is gone`);
    return value;
  }

  async events(...names: EventName[]): Promise<LoggedEvent[]> {
    const all: LoggedEvent[] = [];
    for await (const row of this.#peek().list({ prefix: eventKeys.events(ACCOUNT) })) all.push(row.value);
    return names.length === 0 ? all : all.filter(({ event }) => names.includes(event));
  }

  async queueLength(lineId = "ses_1"): Promise<number> {
    let length = 0;
    for await (const _ of this.#peek().list({ prefix: messageKeys.queueOfLine(lineId) })) length++;
    return length;
  }

  /** Sees the disk whatever state the process is in. */
  #peek(): Kv {
    return new MemoryKv(this.disk);
  }
}

/** A world with one linked, connected line. */
export async function connectedWorld(options: WorldOptions = {}): Promise<World> {
  const world = new World(options);
  await world.addLine();
  await world.boot();
  await world.clock.advance(100);
  return world;
}
