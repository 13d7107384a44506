/** Which accounts chose that their contents are sealed at rest, as the store asks it with every commit. */
import { LRUCache } from "lru-cache";
import type { Clock } from "../runtime.ts";
import type { Kv } from "../store/kv.ts";
import { accountKeys } from "./rows.ts";

/** How long an answer is believed: a command may change it beside the gateway. */
export const CACHE_MS = 1_000;
const ACCOUNTS_KEPT = 10_000;

/** A promise only where it must be read. */
type IsSealedAccount = (accountId: string) => boolean | Promise<boolean>;

export function makeIsSealedAccount(kv: Pick<Kv, "get">, clock: Clock): IsSealedAccount {
  const known = new LRUCache<string, { readAt: number; sealed: boolean }>({ max: ACCOUNTS_KEPT });

  async function read(accountId: string): Promise<boolean> {
    const readAt = clock.now();
    const { value } = await kv.get(accountKeys.account(accountId));
    const sealed = value?.sealed === true;
    known.set(accountId, { readAt, sealed });
    return sealed;
  }

  return (accountId) => {
    const last = known.get(accountId);
    return last && Math.abs(clock.now() - last.readAt) < CACHE_MS ? last.sealed : read(accountId);
  };
}
