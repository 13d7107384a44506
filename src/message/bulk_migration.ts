/** Schema version 6: an account's bulks can be listed. */
import type { Migration } from "../data/migrate.ts";
import { Change, prefix } from "../store/kv.ts";
import { type Bulk, messageKeys } from "./rows.ts";

export const listBulks: Migration = {
  to: 6,
  about: "an account's bulks can be listed",
  async run(kv) {
    for await (const { key, value } of kv.list({ prefix: prefix<Bulk>("bulk") })) {
      await kv.commit(new Change().set(messageKeys.bulkOfAccount(value.accountId, String(key.at(-1))), true));
    }
  },
};
