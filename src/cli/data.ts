/** Opens the data for commands, also while a gateway runs on it. */
import { resolve } from "node:path";
import pino from "pino";
import { exists } from "../base/files.ts";
import type { Config } from "../config.ts";
import { type DataFolder, inDataFolder, isBegun, pathsOf, placeOf } from "../data/data_folder.ts";
import { type Runtime, systemRuntime } from "../runtime.ts";
import type { Kv } from "../store/kv.ts";
import { Exit, printError } from "./output.ts";
import { configOf } from "./settings.ts";

export type Data = DataFolder & { runtime: Runtime };

/** The runtime of commands: it logs nothing, because their output reports everything. */
export const silentRuntime = systemRuntime(pino({ level: "silent" }));

/** Opens the data that the options name, calls `use`, and closes the data. Throws Exit if there is none. */
export async function withData<T>(options: object, use: (data: Data) => Promise<T>): Promise<T> {
  const config = configOf(options);
  await assertData(config);
  return await withFolder(config, use);
}

/** As `withData`, but creates the data if there is none, and reports that, because its name may be mistyped. */
export async function withNewData<T>(options: object, use: (data: Data) => Promise<T>): Promise<T> {
  const config = configOf(options);
  const isThere = await hasData(config);
  return await withFolder(config, async (data) => {
    const place = config.store === null ? resolve(config.dataDir) : placeOf(config);
    const made = config.store === null ? "created it" : "initialized it";
    if (!isThere) printError(`There was no data in ${place}: ${made}.`);
    return await use(data);
  });
}

/** Throws Exit if there is no data, so that a mistyped place is neither created nor reported as empty. */
export async function assertData(config: Config): Promise<void> {
  if (await hasData(config)) return;
  const setting = config.store === null ? "PALOMA_DATA_DIR (--data-dir)" : "PALOMA_STORE (--store)";
  throw new Exit(1, `There is no data in ${placeOf(config)}: check ${setting}. paloma serve creates new data.`);
}

/** Resolves to whether the store has been created. Throws OperatorError if the system refuses access. */
export async function hasData(config: Config): Promise<boolean> {
  const { store, dataDir } = config;
  if (store === null) return await inDataFolder(dataDir, () => exists(pathsOf(dataDir).store));
  return await withStore(config, isBegun);
}

/** Opens the bare store, which needs no key and migrates nothing, calls `use`, and closes it. Throws StoreError. */
export async function withStore<T>(config: Config, use: (store: Kv) => Promise<T>): Promise<T> {
  const { openStore } = await import("../engines.ts");
  const store = await inDataFolder(config.dataDir, () => openStore(config, silentRuntime));
  try {
    return await use(store);
  } finally {
    store.close();
  }
}

/** As `withData`, but from the configuration, and without the check that there is data. */
export async function withFolder<T>(config: Config, use: (data: Data) => Promise<T>): Promise<T> {
  const { openData } = await import("../engines.ts");
  const data = await openData(config, silentRuntime);
  try {
    return await use({ ...data, runtime: silentRuntime });
  } finally {
    data.close();
  }
}
