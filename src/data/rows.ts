/** The store's own state: schema version and proof of the secret key. */
import { key, prefix } from "../store/kv.ts";

export const dataKeys = {
  schemaVersion: () => key<number>("meta", "schema_version"),
  /** When the store was last probed for writes (`makeProbe`). */
  probed: () => key<number>("meta", "probed"),
  /** The time that was confirmed last, Unix ms (`runtime.ts`). */
  confirmedAt: () => key<number>("meta", "confirmed_at"),
  /** When the last backup was made, Unix ms. */
  backedUpAt: () => key<number>("meta", "backed_up_at"),
  /** Present while a restore into a shared store or a bucket is under way, and after one that was interrupted. */
  restoring: () => key<true>("meta", "restoring", "now"),
  restorings: () => prefix<true>("meta", "restoring"),
  /** Sealed bytes that only the secret key of this store opens. */
  secretCheck: () => key<Uint8Array>("meta", "secret_check"),
  /** Present while everything is being re-encrypted: sealed bytes that only the new key opens. */
  rekeying: () => key<Uint8Array>("meta", "rekeying"),
};
