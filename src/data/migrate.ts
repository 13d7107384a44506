/** The schema version of a data folder, and the steps that bring an older one up to date. */
import { OperatorError } from "../errors.ts";
import type { Runtime } from "../runtime.ts";
import { dataKeys } from "./rows.ts";
import { Change, isRow, type Kv, type Row } from "../store/kv.ts";

/**
 * One step. `run` must be idempotent, because it may be interrupted by a crash and run again, or run in two processes
 * at once. It may commit as often as it needs.
 */
export interface Migration {
  /** The version that the data has afterwards. */
  to: number;
  about: string;
  run(kv: Kv): Promise<void>;
}

/** Returns the version after all steps. */
export function newestOf(migrations: readonly Migration[]): number {
  return migrations.at(-1)?.to ?? 1;
}

/** Resolves to the row with the version of existing data. Throws OperatorError if a newer Paloma wrote it. */
export async function schemaVersionOf(kv: Kv, migrations: readonly Migration[]): Promise<Row<number>> {
  const slot = await kv.get(dataKeys.schemaVersion());
  if (!isRow(slot)) throw new Error("the data was begun without a schema version");
  const newest = newestOf(migrations);
  if (slot.value > newest) {
    const message = `the data folder has schema version ${slot.value}, this version of Paloma knows up to ${newest}: ` +
      "use the newer version, or restore a backup that was made before the update";
    throw new OperatorError("data_too_new", message);
  }
  return slot;
}

/**
 * Migrates existing data to the newest version; resolves to it. `migrations` holds every step since version 1, in order.
 * Throws as `schemaVersionOf` does, before anything is written.
 */
export async function migrate(
  kv: Kv,
  { runtime: { log }, migrations }: { runtime: Pick<Runtime, "log">; migrations: readonly Migration[] },
): Promise<number> {
  for (;;) {
    const slot = await schemaVersionOf(kv, migrations);
    const version = slot.value;
    const next = migrations.find((migration) => migration.to > version);
    if (!next) return version;
    log.info({ from: version, to: next.to }, `converting the data: ${next.about}`);
    await next.run(kv);
    await kv.commit(new Change().check(slot).set(dataKeys.schemaVersion(), next.to));
  }
}
