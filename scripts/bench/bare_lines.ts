/** The baseline of the lines: bare Baileys, its keys in memory, every line connected in one process. */
import { Buffer } from "node:buffer";
import { join } from "node:path";
import process from "node:process";
import {
  type AuthenticationCreds,
  BufferJSON,
  DEFAULT_CONNECTION_CONFIG,
  makeWASocket,
  type SignalKeyStore,
  type UserFacingSocketConfig,
  WA_CERT_DETAILS,
  type WASocket,
} from "@whiskeysockets/baileys";
import pino from "pino";
import { restingMemory, runAsChild } from "./child.ts";
import { rest } from "./idle.ts";
import type { Connected } from "./lines.ts";
import type { NetworkReady } from "./network.ts";

export interface BareLine {
  creds: AuthenticationCreds;
  /** By type and id. */
  keys: Record<string, unknown>;
}

/** Where the parent writes the credentials of a line. */
export function bareLinePath(folder: string, index: number): string {
  return join(folder, `bare-${index}.json`);
}

/** As the gateway brings its lines up. */
const STAGGER_MS = 15;
const PING_MS = 20_000;

/** The first lines that the parent wrote to a folder. */
export async function readBareLines(folder: string, lines: number): Promise<BareLine[]> {
  const read: BareLine[] = [];
  // One file per line: garbage from reading a large one would make room for lines, which would then seem to cost nothing.
  for (let i = 0; i < lines; i++) {
    read.push(JSON.parse(await Deno.readTextFile(bareLinePath(folder, i)), BufferJSON.reviver));
  }
  return read;
}

/** Resolves when all of them are logged in. `config`: beside what all baselines have. */
export async function connectBareLines(
  network: NetworkReady,
  lines: readonly BareLine[],
  config: Partial<UserFacingSocketConfig> = {},
): Promise<WASocket[]> {
  // libsignal prints whole sessions with it.
  console.info = () => {};
  WA_CERT_DETAILS.PUBLIC_KEY = Buffer.from(network.rootKey, "hex");
  const logger = pino({ level: "silent" }) as unknown as typeof DEFAULT_CONNECTION_CONFIG.logger;
  return await Promise.all(lines.map(async ({ creds, keys }, i) => {
    await new Promise((resolve) => setTimeout(resolve, i * STAGGER_MS));
    const socket = makeWASocket({
      auth: { creds, keys: memoryKeys(new Map(Object.entries(keys))) },
      logger,
      waWebSocketUrl: network.url,
      markOnlineOnConnect: false,
      syncFullHistory: false,
      shouldSyncHistoryMessage: () => false,
      // As often as the gateway, which has to notice a half-open socket sooner: pings are not what is compared.
      keepAliveIntervalMs: PING_MS,
      ...config,
    });
    socket.ev.on("creds.update", (update) => Object.assign(creds, update));
    await new Promise<void>((resolve, reject) => {
      socket.ev.on("connection.update", ({ connection, lastDisconnect }) => {
        if (connection === "open") resolve();
        if (connection === "close") reject(lastDisconnect?.error ?? new Error("closed"));
      });
    });
    return socket;
  }));
}

function memoryKeys(rows: Map<string, unknown>): SignalKeyStore {
  return {
    get: (type, ids) => {
      const found = ids.flatMap((id) => rows.has(`${type} ${id}`) ? [[id, rows.get(`${type} ${id}`)]] : []);
      return Promise.resolve(Object.fromEntries(found));
    },
    set: (data) => {
      for (const [type, values] of Object.entries(data)) {
        for (const [id, value] of Object.entries(values ?? {})) {
          if (value === null || value === undefined) rows.delete(`${type} ${id}`);
          else rows.set(`${type} ${id}`, value);
        }
      }
    },
  };
}

if (import.meta.main) {
  await runAsChild<{ network: NetworkReady; folder: string; lines: number }, { restMs: number }>(
    async ({ network, folder, lines }) => {
      const mine = await readBareLines(folder, lines);
      const began = performance.now();
      const cpu = process.cpuUsage();
      await connectBareLines(network, mine);
      const { user, system } = process.cpuUsage(cpu);
      const tookMs = performance.now() - began;
      const ready: Connected = { tookMs, cpuMs: (user + system) / 1000, bytes: await restingMemory() };
      return { ready, answer: ({ restMs }) => rest(restMs) };
    },
  );
}
