/** The store's own state: schema version and proof of the secret key. */
import { key, prefix } from "../store/kv.ts";

export const dataKeys = {
  schemaVersion: () => key<number>("meta", "schema_version"),
  /** When it was last tried whether the store takes writes. */
  probed: () => key<number>("meta", "probed"),
  /** Stands while a restore writes into a shared store, and after one that was cut short. */
  restoring: () => key<true>("meta", "restoring", "now"),
  restorings: () => prefix<true>("meta", "restoring"),
  /** Sealed: opens with the secret key of this store and no other. */
  secretCheck: () => key<Uint8Array>("meta", "secret_check"),
  /** There while everything is being sealed anew: some of it under the old key, some under the new. */
  rekeying: () => key<true>("meta", "rekeying"),
};
