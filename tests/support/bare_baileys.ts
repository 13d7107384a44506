/** Baileys as it comes, with its keys in memory: the independent client that the simulated network is held against. */
import { Buffer } from "node:buffer";
import {
  type AuthenticationState,
  type BinaryNode,
  type ConnectionState,
  DEFAULT_CONNECTION_CONFIG,
  generateMessageIDV2,
  initAuthCreds,
  makeWASocket,
  type SignalDataTypeMap,
  WA_CERT_DETAILS,
  type WAMessage,
  type WASocket,
} from "@whiskeysockets/baileys";
import { Agent } from "node:https";
import pino from "pino";
import type { Phone } from "../../src/sandbox/phone/phone.ts";
import type { SandboxNetwork } from "../../src/sandbox/network.ts";

// libsignal prints whole sessions with it.
console.info = () => {};

type Update = Partial<ConnectionState>;

export interface BareClient {
  readonly auth: AuthenticationState;
  socket: WASocket;
  /** What `messages.upsert` brought over all sockets, in order. */
  readonly received: (WAMessage & { upsert: string })[];
  /** Loses all Signal sessions. */
  forgetSessions(): void;
  /** Goes on in its Signal sessions with wrong keys, so that nobody can read what it sends in them. */
  spoilSessions(): void;
  /** Opens another socket on the same keys, and waits until it is open. */
  reconnect(): Promise<void>;
  close(): Promise<void>;
}

/** What the phone tells every device that it has just linked. */
function isWelcome({ message }: WAMessage): boolean {
  const { appStateSyncKeyShare, historySyncNotification } = message?.protocolMessage ?? {};
  return Boolean(appStateSyncKeyShare || historySyncNotification);
}

/** A client of the network with fresh keys. `level` prints the library's log. */
export function bareClient(network: SandboxNetwork, { level = "silent" }: { level?: string } = {}): BareClient {
  WA_CERT_DETAILS.PUBLIC_KEY = Buffer.from(network.rootKey, "hex");
  const received: BareClient["received"] = [];
  const rows = new Map<string, unknown>();
  const sessions = () => [...rows].filter(([key]) => key.startsWith("session "));
  const auth: AuthenticationState = { creds: initAuthCreds(), keys: memoryKeys(rows) };
  const logger = pino({ level }) as unknown as typeof DEFAULT_CONNECTION_CONFIG.logger;
  const open = () => {
    const socket = makeWASocket({
      auth,
      logger,
      waWebSocketUrl: network.url,
      markOnlineOnConnect: false,
      syncFullHistory: false,
      shouldSyncHistoryMessage: () => false,
      fetchAgent: new Agent({ ca: network.caPem }),
      linkPreviewImageThumbnailWidth: 0,
    });
    socket.ev.on("creds.update", (update) => Object.assign(auth.creds, update));
    socket.ev.on("messages.upsert", ({ messages, type }) => {
      const theirs = messages.filter((message) => !isWelcome(message));
      received.push(...theirs.map((message) => Object.assign(message, { upsert: type })));
    });
    return socket;
  };
  const client: BareClient = {
    auth,
    socket: open(),
    received,
    forgetSessions: () => {
      for (const [key] of sessions()) rows.delete(key);
    },
    spoilSessions: () => {
      const wrong = Buffer.alloc(32).toString("base64");
      const spoil = (name: string, value: unknown) => name === "chainKey" ? { ...value as object, key: wrong } : value;
      for (const [key, row] of sessions()) rows.set(key, JSON.parse(JSON.stringify(row), spoil));
    },
    reconnect: async () => {
      client.socket = open();
      await untilUpdate(client.socket, ({ connection }) => connection === "open");
    },
    close: () => client.socket.end(undefined),
  };
  return client;
}

/** A client that a phone has linked by QR, logged in. */
export async function linkedClient(network: SandboxNetwork, phone: Phone, level?: string): Promise<BareClient> {
  const client = bareClient(network, { level });
  const { qr } = await untilUpdate(client.socket, ({ qr }) => qr !== undefined);
  const closed = untilUpdate(client.socket, ({ connection }) => connection === "close");
  await phone.scan(qr!);
  await closed;
  await client.reconnect();
  return client;
}

/** Resolves with the first update that fits. */
export function untilUpdate(socket: WASocket, fits: (update: Update) => boolean): Promise<Update> {
  return new Promise((resolve) => {
    socket.ev.on("connection.update", (update) => fits(update) && resolve(update));
  });
}

/** The status code with which a socket closed. */
export async function untilClosed(socket: WASocket): Promise<number | undefined> {
  const { lastDisconnect } = await untilUpdate(socket, ({ connection }) => connection === "close");
  return (lastDisconnect?.error as { output?: { statusCode?: number } } | undefined)?.output?.statusCode;
}

/** `written` resolves when the message is on its way, `acknowledged` with the network's answer to it. */
export function sendText({ socket }: BareClient, jid: string, text: string, messageId = generateMessageIDV2()) {
  // Before: the answer may be there as soon as the message is.
  const acknowledged = new Promise<BinaryNode>((resolve) => socket.ws.once(`CB:ack,id:${messageId}`, resolve));
  return { messageId, acknowledged, written: socket.sendMessage(jid, { text }, { messageId }) };
}

function memoryKeys(rows: Map<string, unknown>): AuthenticationState["keys"] {
  return {
    get: <T extends keyof SignalDataTypeMap>(type: T, ids: string[]) => {
      const found: { [id: string]: SignalDataTypeMap[T] } = {};
      for (const id of ids) {
        const row = rows.get(`${type} ${id}`);
        if (row !== undefined) found[id] = row as SignalDataTypeMap[T];
      }
      return Promise.resolve(found);
    },
    set: (data) => {
      for (const [type, entries] of Object.entries(data)) {
        for (const [id, row] of Object.entries(entries ?? {})) {
          if (row === null || row === undefined) rows.delete(`${type} ${id}`);
          else rows.set(`${type} ${id}`, row);
        }
      }
      return Promise.resolve();
    },
  };
}
