/**
 * A mark beside a store's file as long as anybody has it open. SQLite removes its log (`-wal`) when the last one closes,
 * so a mark without a log says that the log was taken away after a kill, with what was committed last: the file alone
 * looks like a whole, older store.
 */
import { existsSync } from "node:fs";
import { exists, giveToOwner } from "../../base/files.ts";

export const LOG = "-wal";
export const MARK = "-open";

/** Resolves to whether the store's log is missing. Asked before the file is opened, which begins another log. */
export async function isLogMissing(path: string): Promise<boolean> {
  return await exists(path + MARK) && await exists(path) && !await exists(path + LOG);
}

/** Marks the store as open. Without the mark, on a full disk, a missing log would not be noticed. */
export async function mark(path: string): Promise<void> {
  try {
    (await Deno.open(path + MARK, { create: true, write: true, mode: 0o600 })).close();
    await giveToOwner(path + MARK);
  } catch {
    // As said.
  }
}

/** Removes the mark if this close was the last one. */
export function unmark(path: string): void {
  if (existsSync(path + LOG) || !existsSync(path + MARK)) return;
  Deno.removeSync(path + MARK);
}
