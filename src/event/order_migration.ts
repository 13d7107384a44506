/** Schema version 3: every account has an event order of its own. */
import { accountKeys } from "../account/rows.ts";
import type { Migration } from "../data/migrate.ts";
import { Change, key } from "../store/kv.ts";
import { eventKeys } from "./rows.ts";

export const splitEventOrder: Migration = {
  to: 3,
  about: "every account has an event order of its own",
  /** One row ordered the events of all accounts: each goes on where it stood, so that no cursor sees a step back. */
  async run(kv) {
    const shared = await kv.get(key<number>("store", "order"));
    if (shared.value === null) return;
    for await (const { value: { id } } of kv.list({ prefix: accountKeys.accounts() })) {
      const order = eventKeys.eventOrder(id);
      // An account that has one was converted before, and may have gone on since.
      await kv.commit(new Change().checkAbsent(order).set(order, shared.value));
    }
    await kv.commit(new Change().delete(shared.key));
  },
};
