/** Commands that read or change the data folder, also while a gateway runs on it. */
import pino from "pino";
import type { Config } from "../config.ts";
import type { DataFolder } from "../data/data_folder.ts";
import { type Runtime, systemRuntime } from "../runtime.ts";
import { configOf } from "./settings.ts";

export type Data = DataFolder & { runtime: Runtime };

/** Of commands, whose output says all that there is to say. */
export const silentRuntime = systemRuntime(pino({ level: "silent" }));

/** Opens the folder that the options name, hands it over, closes it. */
export async function withData<T>(options: object, use: (data: Data) => Promise<T>): Promise<T> {
  return await withFolder(configOf(options), use);
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
