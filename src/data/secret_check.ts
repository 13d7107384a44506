/**
 * Notices a secret key that is not the one the store was sealed with, before anything is written with it: one small
 * sealed row that only the right key opens.
 */
import { Buffer } from "node:buffer";
import { accountKeys } from "../account/rows.ts";
import { dataKeys } from "./rows.ts";
import { Change, type Kv } from "../store/kv.ts";
import { type Seal, SealError } from "../store/seal.ts";

/** What is sealed matters to nobody: that it opens is the proof. */
const PROOF = Buffer.from("paloma");

/**
 * Whether `seal` has the key of this store. A new store takes the key of whoever comes first. One that is older than
 * the check is held against its accounts' keys: where none opens, the key is another one; where only some do, two keys
 * were in use, and either goes on being taken. Writes nothing when the answer is false. Throws StoreError.
 */
export async function fitsSecret(kv: Kv, seal: Seal): Promise<boolean> {
  for (;;) {
    const slot = await kv.get(dataKeys.secretCheck());
    if (slot.value !== null) return opens(seal, slot.value);
    const { opened, shut } = await tryAccounts(kv, seal);
    if (shut > 0) return opened > 0;
    // Of two first starts the second finds the row of the first, and is held against it.
    if (await kv.commit(prove(new Change().check(slot), seal))) return true;
  }
}

/** From this change on the store has the key of `seal`. */
export function prove(change: Change, seal: Seal): Change {
  return change.set(dataKeys.secretCheck(), seal.seal(PROOF));
}

/** How many accounts' keys open, and how many stay shut. Where there is no account, nothing else was sealed. */
async function tryAccounts(kv: Kv, seal: Seal): Promise<{ opened: number; shut: number }> {
  const tried = { opened: 0, shut: 0 };
  for await (const { value } of kv.list({ prefix: accountKeys.accounts() })) {
    tried[opens(seal, value.sealedKey) ? "opened" : "shut"]++;
  }
  return tried;
}

function opens(seal: Seal, sealed: Uint8Array): boolean {
  try {
    seal.open(sealed);
    return true;
  } catch (error) {
    if (error instanceof SealError) return false;
    throw error;
  }
}
