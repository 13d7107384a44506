/** The store's own state: schema version and proof of the secret key. */
import { key } from "../store/kv.ts";

export const dataKeys = {
  schemaVersion: () => key<number>("meta", "schema_version"),
  /** When it was last tried whether the store takes writes. */
  probed: () => key<number>("meta", "probed"),
  /** Sealed: opens with the secret key of this store and no other. */
  secretCheck: () => key<Uint8Array>("meta", "secret_check"),
};
