/**
 * Which accounts have more than their share of the media disk, while all files together are over its cap: their received
 * files go first, and they may upload no more until there is room.
 */
import { Problem } from "../errors.ts";
import type { Kv } from "../store/kv.ts";
import { mediaKeys } from "./rows.ts";

/** How often the sweep weighs them. */
const RETRY_AFTER_SECONDS = 60;

export class DiskShares {
  /** Bytes over the share, by account. */
  #over = new Map<string, number>();

  /** Weighs what each account keeps; each may have an equal part of the cap. Reads the row of every file. */
  async weigh(kv: Kv, capBytes: number): Promise<void> {
    const used = new Map<string, number>();
    for await (const { value: { accountId, size } } of kv.list({ prefix: mediaKeys.files() })) {
      used.set(accountId, (used.get(accountId) ?? 0) + size);
    }
    const share = capBytes / Math.max(1, used.size);
    this.#over = new Map([...used].map(([id, bytes]) => [id, bytes - share] as const).filter(([, over]) => over > 0));
  }

  /** All files fit. */
  clear(): void {
    this.#over.clear();
  }

  /** Whether a received file of the account is to go; where no account has too much, any file may. */
  mustGive(accountId: string): boolean {
    return this.#over.size === 0 || (this.#over.get(accountId) ?? 0) > 0;
  }

  /** This many bytes of the account were removed. */
  gave(accountId: string, bytes: number): void {
    const over = this.#over.get(accountId);
    if (over !== undefined) this.#over.set(accountId, over - bytes);
  }

  /** Throws Problem too_much_at_once while the account has more than its share of a full disk. */
  assertRoom(accountId: string): void {
    if ((this.#over.get(accountId) ?? 0) <= 0) return;
    throw new Problem("too_much_at_once", "The account's files take more than its share of the disk.", {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    });
  }
}
