/** A data folder with accounts and linked lines, made once and copied for every measurement. */
import { join } from "node:path";
import { BufferJSON } from "@whiskeysockets/baileys";
import { startGateway } from "../../src/app.ts";
import { openData } from "../../src/engines.ts";
import { type Client, httpClient, linkByQr } from "../../src/cli/client.ts";
import { readConfig } from "../../src/config.ts";
import type { SettingValues } from "../../src/settings.ts";
import { makeLog } from "../../src/ops/log.ts";
import { systemClock, systemRuntime } from "../../src/runtime.ts";
import { lineKeys } from "../../src/line/rows.ts";
import { deleteKeys } from "../../src/store/delete_range.ts";
import { networkKeys } from "../../src/whatsapp/baileys/rows.ts";
import { type BareLine, bareLinePath } from "./bare_lines.ts";
import type { Child } from "./child.ts";
import type { NetworkReady, Site } from "./network.ts";

export interface LinkedFolder {
  readonly dataDir: string;
  /** The settings that a gateway on this folder needs. */
  readonly settings: SettingValues;
  readonly accounts: readonly LinkedAccount[];
}

export interface LinkedAccount {
  apiKey: string;
  sessionIds: readonly string[];
}

interface LinkedFolderOptions {
  accounts: number;
  /** Of each account. */
  lines: number;
  /** Of the gateway, besides those of its environment. */
  settings?: SettingValues;
  /** Called for each account while the gateway runs and its lines are connected. */
  prepare?: (api: Client, account: LinkedAccount) => Promise<void>;
}

/** Links lines as a client would: over the API, a phone scanning each QR. */
export async function makeLinkedFolder(
  { root, network }: Pick<Site, "root" | "network">,
  options: LinkedFolderOptions,
): Promise<LinkedFolder> {
  const dataDir = await Deno.makeTempDir({ dir: root, prefix: "data-" });
  const settings = { ...await settingsFor({ root, network }), ...options.settings };
  const config = readConfig({ PALOMA_PORT: "0", PALOMA_DATA_DIR: dataDir, ...settings });
  const gateway = await startGateway({ config, runtime: systemRuntime(makeLog("error")) });
  const control = httpClient(network.ready.controlUrl);
  const accounts: LinkedAccount[] = [];
  for (let i = 0; i < options.accounts; i++) {
    const { apiKey } = await gateway.accounts.create({ name: `bench ${i}`, plan: "sandbox" });
    const api = httpClient(gateway.baseUrl, { "x-api-key": apiKey });
    const sessionIds: string[] = [];
    for (let left = options.lines; left > 0; left -= AT_ONCE) {
      const linking = Array.from({ length: Math.min(left, AT_ONCE) }, () => linkLine({ api, control }));
      sessionIds.push(...await Promise.all(linking));
    }
    accounts.push({ apiKey, sessionIds });
    await options.prepare?.(api, accounts.at(-1)!);
  }
  await gateway.stop();
  return { dataDir, settings, accounts };
}

/** The settings of a gateway on the simulated network. */
export async function settingsFor(
  { root, network: { ready } }: Pick<Site, "root" | "network">,
): Promise<SettingValues> {
  const ca = join(root, "ca.pem");
  await Deno.writeTextFile(ca, ready.caPem);
  return {
    PALOMA_WHATSAPP_URL: ready.url,
    PALOMA_WHATSAPP_ROOT_KEY: ready.rootKey,
    PALOMA_WHATSAPP_MEDIA_URL: ready.mediaUrl,
    PALOMA_WHATSAPP_CA: ca,
  };
}

/** A copy to measure on; `count`: with the first account's first lines only. */
export async function copyFolder(folder: LinkedFolder, root: string, count = Infinity): Promise<string> {
  const { dataDir, accounts } = folder;
  const copy = await Deno.makeTempDir({ dir: root, prefix: "copy-" });
  for await (const { name, isFile } of Deno.readDir(dataDir)) {
    if (isFile) await Deno.copyFile(join(dataDir, name), join(copy, name));
  }
  const others = accounts[0]!.sessionIds.slice(count);
  if (others.length === 0) return copy;
  const { kv, close } = await openData({ dataDir: copy, secretKey: null }, systemRuntime(makeLog("error")));
  await deleteKeys(kv, others.map((lineId) => lineKeys.line(lineId)));
  close();
  return copy;
}

/** Writes credentials and keys of the first account's lines for bare Baileys, which keeps them in memory. */
export async function exportLines(folder: LinkedFolder, root: string): Promise<void> {
  const { dataDir, accounts } = folder;
  const { kv, seal, close } = await openData({ dataDir, secretKey: null }, systemRuntime(makeLog("error")));
  const open = (sealed: Uint8Array) => JSON.parse(new TextDecoder().decode(seal.open(sealed)), BufferJSON.reviver);
  for (const [i, lineId] of accounts[0]!.sessionIds.entries()) {
    const line: BareLine = { creds: open((await kv.get(networkKeys.waCreds(lineId))).value!), keys: {} };
    const prefix = [...networkKeys.waLine(lineId), "key"];
    for await (const { key: [, , , type, id], value } of kv.list<Uint8Array>({ prefix })) {
      line.keys[`${type} ${id}`] = open(value);
    }
    await Deno.writeTextFile(bareLinePath(root, i), JSON.stringify(line, BufferJSON.replacer));
  }
  close();
}

/** How many lines are linked at once. */
const AT_ONCE = 6;
const PHONES_AT_ONCE = 25;

let phones = 0;

/** Recipients to whom no line has written before: both sides have to start Signal sessions. */
export async function newPhones(network: Child<NetworkReady>, count: number): Promise<string[]> {
  const control = httpClient(network.ready.controlUrl);
  const numbers: string[] = [];
  while (numbers.length < count) {
    const some = Array.from({ length: Math.min(PHONES_AT_ONCE, count - numbers.length) }, () => newPhone(control));
    numbers.push(...await Promise.all(some));
  }
  return numbers;
}

/** The number of a new phone. */
async function newPhone(control: Client): Promise<string> {
  const number = String(4915550000000 + ++phones);
  await control.call("POST", "/phones", { number });
  return number;
}

export async function linkLine({ api, control }: { api: Client; control: Client }): Promise<string> {
  const phone = await newPhone(control);
  const { data } = await api.call("POST", "/sessions", { name: `line of ${phone}` });
  await linkByQr(systemClock, { api, control, sessionId: data._id, phone });
  return data._id;
}
