/** The schema version of a data folder, and the steps that bring an older one up to date. */
import type { Runtime } from "../runtime.ts";
import { dataKeys } from "./rows.ts";
import { accountKeys } from "../account/rows.ts";
import { eventKeys } from "../event/rows.ts";
import { mediaKeys } from "../media/rows.ts";
import { Change, key, type Kv } from "../store/kv.ts";

/**
 * One step. `run` may be cut short by a crash, or run in two processes at once, and is then run again: it must be
 * idempotent. It may commit as often as it needs.
 */
export interface Migration {
  /** The version that the data has afterwards. */
  to: number;
  about: string;
  run(kv: Kv): Promise<void>;
}

/** Every step since version 1, in order. */
const MIGRATIONS: readonly Migration[] = [
  { to: 2, about: "received files are found by when they end", run: indexFileEnds },
  { to: 3, about: "every account has an event order of its own", run: splitEventOrder },
];

/** Rows that are converted in one commit. */
const AT_ONCE = 500;

export interface MigrateOptions {
  runtime: Pick<Runtime, "log">;
  /** The product's own when left out. */
  migrations?: readonly Migration[];
}

/** The data was written by a newer Paloma than this one. */
export class SchemaTooNew extends Error {
  override name = "SchemaTooNew";

  constructor(found: number, known: number) {
    super(
      `the data folder has schema version ${found}, this version of Paloma knows up to ${known}: ` +
        "use the newer version, or restore a backup that was made before the update",
    );
  }
}

/** Brings the data to the newest version and answers it. Throws SchemaTooNew before anything is written. */
export async function migrate(kv: Kv, options: MigrateOptions): Promise<number> {
  const migrations = options.migrations ?? MIGRATIONS;
  const newest = migrations.at(-1)?.to ?? 1;
  for (;;) {
    const slot = await kv.get(dataKeys.schemaVersion());
    // A new folder begins at the newest version: there is nothing to convert.
    if (slot.value === null) {
      if (await kv.commit(new Change().check(slot).set(dataKeys.schemaVersion(), newest))) return newest;
      continue;
    }
    const version = slot.value;
    if (version > newest) throw new SchemaTooNew(version, newest);
    const next = migrations.find((migration) => migration.to > version);
    if (!next) return version;
    options.runtime.log.info({ from: version, to: next.to }, `converting the data: ${next.about}`);
    await next.run(kv);
    await kv.commit(new Change().check(slot).set(dataKeys.schemaVersion(), next.to));
  }
}

/** A file that goes meanwhile leaves a row behind that the sweep removes in its time. */
async function indexFileEnds(kv: Kv): Promise<void> {
  let change = new Change();
  for await (const { value: { id, expiresAt, size } } of kv.list({ prefix: mediaKeys.files() })) {
    if (expiresAt !== null) change.set(mediaKeys.fileEnd(expiresAt, id), size);
    if (change.mutations.length < AT_ONCE) continue;
    await kv.commit(change);
    change = new Change();
  }
  await kv.commit(change);
}

/** One row ordered the events of all accounts: each goes on where it stood, so that no cursor sees a step back. */
async function splitEventOrder(kv: Kv): Promise<void> {
  const shared = await kv.get(key<number>("store", "order"));
  if (shared.value === null) return;
  for await (const { value: { id } } of kv.list({ prefix: accountKeys.accounts() })) {
    const order = eventKeys.eventOrder(id);
    // An account that has one was converted before, and may have gone on since.
    await kv.commit(new Change().checkAbsent(order).set(order, shared.value));
  }
  await kv.commit(new Change().delete(shared.key));
}
