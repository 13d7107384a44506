/** Commands that read or change the data folder, also while a gateway runs on it. */
import pino from "pino";
import { exists } from "../base/files.ts";
import type { Config } from "../config.ts";
import type { DataFolder } from "../data/data_folder.ts";
import { type Runtime, systemRuntime } from "../runtime.ts";
import { Exit } from "./output.ts";
import { configOf } from "./settings.ts";

export type Data = DataFolder & { runtime: Runtime };

/** Of commands, whose output says all that there is to say. */
export const silentRuntime = systemRuntime(pino({ level: "silent" }));

/** Opens the folder that the options name, hands it over, closes it. */
export async function withData<T>(options: object, use: (data: Data) => Promise<T>): Promise<T> {
  return await withFolder(configOf(options), use);
}

/** As `withData`, where there is data already. Throws Exit. */
export async function withExistingData<T>(options: object, use: (data: Data) => Promise<T>): Promise<T> {
  const config = configOf(options);
  await assertData(config);
  return await withFolder(config, use);
}

/** Throws Exit where no data is kept: a folder whose name is mistyped is neither made nor said to hold nothing. */
export async function assertData(config: Config): Promise<void> {
  if (await hasData(config)) return;
  throw new Exit(1, `There is no data in ${config.dataDir}: is PALOMA_DATA_DIR (--data-dir) right?`);
}

/** Whether the store has been made; one on a server counts as made. */
export async function hasData({ store, dataDir }: Config): Promise<boolean> {
  if (store !== null) return true;
  const { pathsOf } = await import("../data/data_folder.ts");
  return await exists(pathsOf(dataDir).store);
}

/** As `withData`, of the folder that is configured. */
export async function withFolder<T>(config: Config, use: (data: Data) => Promise<T>): Promise<T> {
  const { dataFolder } = await import("../app.ts");
  const data = await dataFolder.open(config, silentRuntime);
  try {
    return await use({ ...data, runtime: silentRuntime });
  } finally {
    data.close();
  }
}
