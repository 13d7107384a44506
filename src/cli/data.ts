/** Commands that read or change the data folder, also while a gateway runs on it. */
import pino from "pino";
import type { DataFolder } from "../data/data_folder.ts";
import { type Runtime, systemRuntime } from "../runtime.ts";
import { configOf } from "./settings.ts";

export type Data = DataFolder & { runtime: Runtime };

/** Opens the folder that the options name, hands it over, closes it. */
export async function withData(
  options: Record<string, unknown>,
  use: (data: Data) => Promise<void>,
): Promise<void> {
  const { dataFolder } = await import("../app.ts");
  const runtime = systemRuntime(pino({ level: "silent" }));
  const data = await dataFolder.open(configOf(options), runtime);
  try {
    await use({ ...data, runtime });
  } finally {
    data.close();
  }
}
