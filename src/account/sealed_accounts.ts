/** Which accounts have their contents sealed at rest; queried by the store at every commit. */
import { LRUCache } from "lru-cache";
import { atMost } from "../base/at_most.ts";
import type { Clock } from "../runtime.ts";
import type { Kv } from "../store/kv.ts";
import { accountKeys } from "./rows.ts";

/** How long an answer is cached; a command may change it while the gateway runs. */
export const CACHE_MS = 1_000;
const ACCOUNTS_KEPT = 10_000;

/** Returns a promise only if the answer must be read from the store. */
type IsSealedAccount = (accountId: string) => boolean | Promise<boolean>;

export function makeIsSealedAccount(kv: Pick<Kv, "get">, clock: Clock): IsSealedAccount {
  const known = new LRUCache<string, boolean>(atMost(ACCOUNTS_KEPT, { forMs: CACHE_MS, clock }));

  async function read(accountId: string): Promise<boolean> {
    const start = clock.now();
    const { value } = await kv.get(accountKeys.account(accountId));
    const sealed = value?.sealed === true;
    known.set(accountId, sealed, { start });
    return sealed;
  }

  return (accountId) => known.get(accountId) ?? read(accountId);
}
