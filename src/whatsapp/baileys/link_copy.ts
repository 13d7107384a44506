/** What links a line, as one piece of bytes that another gateway takes up: credentials, Signal keys and the journal. */
import { Buffer } from "node:buffer";
import { piecesOf } from "../../base/batches.ts";
import { deleteRange } from "../../store/delete_range.ts";
import { Change, type Key, type Kv } from "../../store/kv.ts";
import type { Seal } from "../../store/seal.ts";
import type { LinkCopy } from "../network.ts";
import { networkKeys } from "./rows.ts";

/** Sealed pre-keys are small, sessions some KB: well below what a commit takes. */
const ROWS_A_COMMIT = 100;

/** The rest of a row's key behind the line's prefix, and the opened value in base64. */
type CopiedRow = [rest: string[], value: string];

export function makeLinkCopy({ kv, seal }: { kv: Kv; seal: Seal }): LinkCopy {
  const isCopied = ([kind]: readonly unknown[]) => kind === "creds" || kind === "key";
  return {
    async read(lineId) {
      const prefix = networkKeys.waLine(lineId);
      const rows: CopiedRow[] = [];
      for await (const { key, value } of kv.list({ prefix })) {
        const rest = key.slice(prefix.length).map(String);
        // What is left out the network gives again: recipients, messages sent, stanzas seen.
        if (!isCopied(rest) || !(value instanceof Uint8Array)) continue;
        rows.push([rest, Buffer.from(seal.open(value)).toString("base64")]);
      }
      return new TextEncoder().encode(JSON.stringify(rows));
    },
    async write(lineId, copy) {
      const rows: CopiedRow[] = JSON.parse(new TextDecoder().decode(copy));
      for (const piece of piecesOf(rows, ROWS_A_COMMIT)) {
        const change = new Change();
        for (const [rest, value] of piece) {
          const key: Key = [...networkKeys.waLine(lineId), ...rest];
          change.set(key, seal.seal(Buffer.from(value, "base64")));
        }
        await kv.commit(change);
      }
    },
    drop: async (lineId) => void await deleteRange(kv, { prefix: networkKeys.waLine(lineId) }),
  };
}
