/** Baileys as it comes, with its keys in memory: the independent client that the simulated network is held against. */
import { Buffer } from "node:buffer";
import {
  type AuthenticationState,
  DEFAULT_CONNECTION_CONFIG,
  initAuthCreds,
  makeWASocket,
  type SignalDataTypeMap,
  WA_CERT_DETAILS,
  type WASocket,
} from "@whiskeysockets/baileys";
import { Agent } from "node:https";
import pino from "pino";
import type { SandboxNetwork } from "../../src/sandbox/network.ts";

export interface BareClient {
  readonly auth: AuthenticationState;
  socket: WASocket;
  /** Opens another socket on the same keys. */
  reconnect(): WASocket;
  close(): Promise<void>;
}

/** A client of the network with fresh keys. `level` prints the library's log. */
export function bareClient(network: SandboxNetwork, { level = "silent" }: { level?: string } = {}): BareClient {
  WA_CERT_DETAILS.PUBLIC_KEY = Buffer.from(network.rootKey, "hex");
  const auth: AuthenticationState = { creds: initAuthCreds(), keys: memoryKeys() };
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
    return socket;
  };
  const client: BareClient = {
    auth,
    socket: open(),
    reconnect: () => client.socket = open(),
    close: () => client.socket.end(undefined),
  };
  return client;
}

/** Resolves with the first update that fits. */
export function untilUpdate(
  socket: WASocket,
  fits: (update: Partial<import("@whiskeysockets/baileys").ConnectionState>) => boolean,
): Promise<Partial<import("@whiskeysockets/baileys").ConnectionState>> {
  return new Promise((resolve) => {
    socket.ev.on("connection.update", (update) => fits(update) && resolve(update));
  });
}

/** The status code with which a socket closed. */
export function closeCode(update: Partial<import("@whiskeysockets/baileys").ConnectionState>): number | undefined {
  return (update.lastDisconnect?.error as { output?: { statusCode?: number } } | undefined)?.output?.statusCode;
}

function memoryKeys(): AuthenticationState["keys"] {
  const rows = new Map<string, unknown>();
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
