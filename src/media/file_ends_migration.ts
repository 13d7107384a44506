/** Schema version 2: received files are found by when they end. */
import type { Migration } from "../data/migrate.ts";
import { Change } from "../store/kv.ts";
import { mediaKeys } from "./rows.ts";

/** Rows that are converted in one commit. */
const AT_ONCE = 500;

export const indexFileEnds: Migration = {
  to: 2,
  about: "received files are found by when they end",
  /** A file that goes meanwhile leaves a row behind that the sweep removes in its time. */
  async run(kv) {
    let change = new Change();
    for await (const { value: { id, expiresAt, size } } of kv.list({ prefix: mediaKeys.files() })) {
      if (expiresAt !== null) change.set(mediaKeys.fileEnd(expiresAt, id), size);
      if (change.mutations.length < AT_ONCE) continue;
      await kv.commit(change);
      change = new Change();
    }
    await kv.commit(change);
  },
};
