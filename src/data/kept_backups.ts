/** The names of backups that are kept in one folder, which sort by time; and when another is due. */

/** How many are kept, unless told otherwise. */
export const BACKUPS_KEPT = 7;

const NAME = /^paloma-(\d{4}-\d{2}-\d{2})T(\d{2})-(\d{2})-(\d{2})Z\.backup$/;

/** Returns the name of a backup that is made at this time, Unix ms. */
export function backupName(time: number): string {
  return `paloma-${new Date(time).toISOString().replace(/\.\d+Z$/, "Z").replaceAll(":", "-")}.backup`;
}

/** Returns when the backup of this name was made, Unix ms; null if it is not the name of one. */
export function backupTime(name: string): number | null {
  const [, date, hours, minutes, seconds] = NAME.exec(name) ?? [];
  const time = Date.parse(`${date}T${hours}:${minutes}:${seconds}Z`);
  return Number.isNaN(time) ? null : time;
}

/** A gateway with accounts should have a backup that is not older than this. */
const WITHIN_MS = 7 * 24 * 60 * 60_000;

/** Whether a backup is due at the time `now`. `lastAt`: of the newest one, Unix ms, null for none. */
export function isBackupDue(
  lastAt: number | null,
  { accounts, now }: { accounts: readonly { createdAt: number }[]; now: number },
): boolean {
  return now - (lastAt ?? Math.min(...accounts.map(({ createdAt }) => createdAt))) > WITHIN_MS;
}
