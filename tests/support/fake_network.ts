/** A messaging network at the port: a test says what happens, and sees what the product asked of it. */
import { type Clock, sleep } from "../../src/runtime.ts";
import {
  type CloseReason,
  type Connection,
  type ConnectionEvents,
  type ConnectionHealth,
  NetworkTimeout,
  type OwnIdentity,
  PasskeyNotRequested,
} from "../../src/whatsapp/connection.ts";
import type { NumberCheck } from "../../src/whatsapp/chats.ts";
import type { Incoming, Recalled } from "../../src/whatsapp/incoming.ts";
import type { Network, OpenOptions } from "../../src/whatsapp/network.ts";
import type { Outgoing, Prepared, SendOutcome, Unsent } from "../../src/whatsapp/outgoing.ts";
import type { Traces } from "../../src/whatsapp/person.ts";
import { fakeChats, fakeContacts, fakeGroups } from "./fake_chats.ts";

/** One attempt as the network saw it. */
export interface Departure {
  lineId: string;
  networkId: string;
  to: string;
  at: number;
}

const OFFLINE: Unsent = { kind: "hold", detail: "not connected" };
const ME: OwnIdentity = { phone: "34600000001", lid: "1@lid", pushName: "Me" };

export class FakeNetwork implements Network {
  readonly departures: Departure[] = [];
  readonly connections: FakeConnection[] = [];
  readonly linked = new Set<string>();
  readonly forgotten: string[] = [];
  /** What comes of each attempt, unless the test answers itself. Null: no answer until the test gives one. */
  outcome: (message: Outgoing, connection: FakeConnection) => SendOutcome | null = ({ to }) => ({
    kind: "sent",
    chat: to,
  });
  /** What was asked to be prepared, and whether it was not wanted any more before its end. */
  readonly preparations: { networkId: string; at: number; signal: AbortSignal }[] = [];
  /** For whom "typing" was shown. */
  readonly typed: { networkId: string; at: number }[] = [];
  /** What comes of preparing a message, unless it gets ready. */
  preparing: (message: Outgoing) => Unsent | null = () => null;
  /** How long a message takes to get ready, from then until it is on the wire, and from there to the answer. */
  prepareMs: (message: Outgoing) => number = () => 0;
  encodeMs: () => number = () => 0;
  answerMs: () => number = () => 0;
  /** Opens by itself when the line is linked. */
  opensByItself = true;
  /** Whose phone links the lines. */
  owner = ME;
  /** Thrown by `open` while set. */
  broken: Error | null = null;
  readonly clock: Clock;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  open(options: OpenOptions, events: ConnectionEvents): Promise<Connection> {
    if (this.broken) return Promise.reject(this.broken);
    const connection = new FakeConnection(this, options, events);
    this.connections.push(connection);
    if (this.opensByItself && this.linked.has(options.lineId)) connection.opens();
    return Promise.resolve(connection);
  }

  isLinked(lineId: string): Promise<boolean> {
    return Promise.resolve(this.linked.has(lineId));
  }

  /** What the lines are to remember of messages that came in, by line and network id. */
  readonly recalled = new Map<string, Recalled>();

  /** The digits behind LIDs, whichever line asks. */
  readonly numbers = new Map<string, string>();

  numberOf(_lineId: string, lid: string): Promise<string | null> {
    return Promise.resolve(this.numbers.get(lid) ?? null);
  }

  /** What was asked to be erased. */
  readonly erased: string[] = [];

  lidOf(_lineId: string, number: string): Promise<string | null> {
    return Promise.resolve([...this.numbers].find(([, known]) => known === number)?.[0] ?? null);
  }

  erase(lineId: string, traces: Traces): Promise<null> {
    this.erased.push(`${lineId} ${traces.chats}`);
    return Promise.resolve(null);
  }

  eraseKeys(lineId: string, traces: Traces): Promise<number> {
    this.erased.push(`${lineId} keys of ${traces.users}`);
    return Promise.resolve(0);
  }

  eraseSent(lineId: string, networkIds: readonly string[]): Promise<void> {
    this.erased.push(...networkIds.map((id) => `${lineId} ${id}`));
    return Promise.resolve();
  }

  eraseReceived(lineId: string, messages: readonly { networkId: string }[]): Promise<void> {
    this.erased.push(...messages.map(({ networkId }) => `${lineId} ${networkId}`));
    return Promise.resolve();
  }

  recall(lineId: string, networkId: string): Promise<Recalled | null> {
    return Promise.resolve(this.recalled.get(`${lineId} ${networkId}`) ?? null);
  }

  forget(lineId: string): Promise<void> {
    this.linked.delete(lineId);
    this.forgotten.push(lineId);
    return Promise.resolve();
  }

  /** The newest connection of the line. */
  of(lineId: string): FakeConnection {
    const found = this.connections.findLast(({ options }) => options.lineId === lineId);
    if (!found) throw new Error(`line ${lineId} was never opened`);
    return found;
  }

  /** The process that used it has died: nothing it opened is heard any more. */
  webVersion() {
    return { version: "2.3000.1", source: "setting", since: this.clock.now(), expiresAt: null };
  }

  sweep(): Promise<number> {
    return Promise.resolve(0);
  }

  forgetProcess(): void {
    for (const connection of this.connections) {
      connection.isClosed = true;
      connection.isOpen = false;
    }
  }
}

export class FakeConnection implements Connection {
  readonly options: OpenOptions;
  readonly events: ConnectionEvents;
  isOpen = false;
  isClosed = false;
  loggedOut = false;
  /** What came of the attempts that wait for an answer. */
  readonly #waiting: ((outcome: SendOutcome) => void)[] = [];
  readonly #network: FakeNetwork;

  constructor(network: FakeNetwork, options: OpenOptions, events: ConnectionEvents) {
    this.#network = network;
    this.options = options;
    this.events = events;
  }

  /** Hands over a message, with no rows of its own. */
  receive(message: Incoming): Promise<boolean> {
    return this.events.message(message, () => {});
  }

  opens(): void {
    this.isOpen = true;
    this.events.open(this.#network.owner);
  }

  /** The phone accepts the link; the network then asks for the restart. */
  links(): void {
    this.#network.linked.add(this.options.lineId);
    this.events.linked(this.#network.owner);
    this.ends("restart", 515);
  }

  ends(kind: CloseReason["kind"], code: number | null = null): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.isOpen = false;
    for (const answer of this.#waiting.splice(0)) answer({ kind: "unknown", detail: "the connection ended" });
    this.events.closed({ kind, code, detail: `it ended: ${kind}` });
  }

  /** Answers the oldest attempt that waits. */
  answers(outcome: SendOutcome): void {
    this.#waiting.shift()?.(outcome);
  }

  async prepare(message: Outgoing, signal: AbortSignal): Promise<Prepared> {
    if (!this.isOpen) return OFFLINE;
    const { clock, preparations, preparing, prepareMs } = this.#network;
    preparations.push({ networkId: message.networkId, at: clock.now(), signal });
    const takesMs = prepareMs(message);
    if (takesMs > 0) await sleep(clock, takesMs, signal);
    if (!this.isOpen) return OFFLINE;
    return preparing(message) ?? {
      kind: "ready",
      keep: () => {},
      type: () => void this.#network.typed.push({ networkId: message.networkId, at: clock.now() }),
      leavesNext: () => Promise.resolve(),
      send: () => this.#send(message),
    };
  }

  async #send(message: Outgoing): Promise<SendOutcome> {
    if (!this.isOpen) return OFFLINE;
    const { clock } = this.#network;
    const pause = (ms: number) => ms > 0 ? new Promise<void>((resolve) => clock.after(ms, resolve)) : Promise.resolve();
    await pause(this.#network.encodeMs());
    if (!this.isOpen) return OFFLINE;
    const { lineId } = this.options;
    this.#network.departures.push({ lineId, networkId: message.networkId, to: message.to, at: clock.now() });
    const outcome = this.#network.outcome(message, this);
    if (outcome === null) return await new Promise((resolve) => this.#waiting.push(resolve));
    await pause(this.#network.answerMs());
    return outcome;
  }

  allows(): Promise<boolean> {
    return Promise.resolve(true);
  }

  health(): Promise<ConnectionHealth> {
    const unknown = { lastFrameAt: null, lastReceivedAt: null, lastSentAt: null, pingMs: null, newChats: null };
    return Promise.resolve({ ...unknown, undecryptable: 0, webVersion: this.#network.webVersion() });
  }

  signPasskey(): Promise<void> {
    return Promise.reject(new PasskeyNotRequested());
  }

  confirmPasskey(): Promise<void> {
    return Promise.reject(new PasskeyNotRequested());
  }

  checkNumber(number: string): Promise<NumberCheck> {
    if (!this.isOpen) return Promise.reject(new NetworkTimeout("not connected"));
    return Promise.resolve({ exists: true, jid: `${number}@s.whatsapp.net` });
  }

  readonly groups = fakeGroups(() => this.isOpen);
  readonly contacts = fakeContacts(() => this.isOpen);
  readonly chats = fakeChats(() => this.isOpen);

  logout(): Promise<void> {
    this.loggedOut = true;
    this.ends("asked");
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.ends("asked");
    return Promise.resolve();
  }
}
