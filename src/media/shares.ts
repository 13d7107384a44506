/**
 * Tracks which accounts exceed their share of the media disk while all files together exceed its limit. Their received
 * files are removed first, and they may not upload until there is room.
 */
import { Problem } from "../errors.ts";
import type { Kv } from "../store/kv.ts";
import { mediaKeys } from "./rows.ts";

/** Interval of the sweep that recomputes the shares. */
const RETRY_AFTER_SECONDS = 60;

export class DiskShares {
  /** Bytes above the share, by account. */
  #over = new Map<string, number>();

  /** Recomputes each account's excess over an equal part of the limit. Reads the row of every file. */
  async weigh(kv: Kv, capBytes: number): Promise<void> {
    const used = new Map<string, number>();
    for await (const { value: { accountId, size } } of kv.list({ prefix: mediaKeys.files() })) {
      used.set(accountId, (used.get(accountId) ?? 0) + size);
    }
    const share = capBytes / Math.max(1, used.size);
    this.#over = new Map([...used].map(([id, bytes]) => [id, bytes - share] as const).filter(([, over]) => over > 0));
  }

  /** Called when all files fit again. */
  clear(): void {
    this.#over.clear();
  }

  /** Whether a received file of the account should be removed; if no account exceeds its share, any file may be. */
  mustGive(accountId: string): boolean {
    return this.#over.size === 0 || (this.#over.get(accountId) ?? 0) > 0;
  }

  /** Records that bytes of the account were removed. */
  gave(accountId: string, bytes: number): void {
    const over = this.#over.get(accountId);
    if (over !== undefined) this.#over.set(accountId, over - bytes);
  }

  /** Throws Problem too_much_at_once while the account exceeds its share of a full disk. */
  assertRoom(accountId: string): void {
    if ((this.#over.get(accountId) ?? 0) <= 0) return;
    throw new Problem("too_much_at_once", "The account's files take more than its share of the disk.", {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    });
  }
}
