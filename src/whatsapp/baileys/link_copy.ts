/** The link of a line as bytes that another gateway can take over: credentials, Signal keys and the journal. */
import { Buffer } from "node:buffer";
import { inBatches } from "../../base/batches.ts";
import { unlessMalformed } from "../../base/retry.ts";
import { OperatorError } from "../../errors.ts";
import { deleteRange } from "../../store/delete_range.ts";
import { Change, type Key } from "../../store/kv.ts";
import type { Runtime } from "../../runtime.ts";
import { lastSetback, type LinkCopy } from "../network.ts";
import { type LineRows, networkKeys } from "./rows.ts";

/** Sealed pre-keys are small and sessions take a few KB, so this stays well below the limits of a commit. */
const ROWS_A_COMMIT = 100;

/** The part of a row's key after the line's prefix, and the unsealed value in base64. */
type CopiedRow = [rest: string[], value: string];

interface LinkCopyOptions extends Omit<LineRows, "lineId"> {
  runtime: Pick<Runtime, "clock">;
}

/** The rest need not move: recipients, sent messages, seen stanzas. */
const isCopied = ([kind]: readonly unknown[]) => kind === "creds" || kind === "key";

export function makeLinkCopy({ kv, seal, runtime }: LinkCopyOptions): LinkCopy {
  return {
    async read(lineId) {
      // The other gateway can't tell whether the keys are older than messages sent with them.
      if (await lastSetback(kv) !== null) {
        const { renewKeys } = await import("./renewed_keys.ts");
        await renewKeys({ kv, seal, lineId, runtime });
      }
      const prefix = networkKeys.waLine(lineId);
      const rows: CopiedRow[] = [];
      for await (const { key, value } of kv.list({ prefix })) {
        const rest = key.slice(prefix.length).map(String);
        if (!isCopied(rest) || !(value instanceof Uint8Array)) continue;
        rows.push([rest, Buffer.from(seal.open(value)).toString("base64")]);
      }
      return new TextEncoder().encode(JSON.stringify(rows));
    },
    opened(copy) {
      const rows = rowsOf(copy);
      return (lineId) => write(lineId, rows);
    },
    drop: async (lineId) => void await deleteRange(kv, { prefix: networkKeys.waLine(lineId) }),
  };

  async function write(lineId: string, rows: readonly CopiedRow[]): Promise<void> {
    const creds = await kv.get(networkKeys.waCreds(lineId));
    if (creds.value !== null) {
      const { readLink } = await import("./auth_state.ts");
      if (await readLink({ kv, seal, lineId })) return;
    }
    for (const batch of inBatches(rows, ROWS_A_COMMIT)) {
      const change = new Change().check(creds);
      for (const [rest, value] of batch) {
        const key: Key = [...networkKeys.waLine(lineId), ...rest];
        change.set(key, seal.seal(Buffer.from(value, "base64")));
      }
      if (await kv.commit(change) === null) return await write(lineId, rows);
    }
  }
}

/** Sorted, with the credentials last: by them the line is linked. Throws OperatorError. */
function rowsOf(copy: Uint8Array): CopiedRow[] {
  const rows: unknown = unlessMalformed(() => JSON.parse(new TextDecoder().decode(copy)), null);
  const isRow = (row: unknown): row is CopiedRow =>
    Array.isArray(row) && Array.isArray(row[0]) && isCopied(row[0]) && row[0].every((part) =>
      typeof part === "string"
    ) &&
    typeof row[1] === "string";
  if (!Array.isArray(rows) || !rows.every(isRow)) {
    throw new OperatorError("transfer_failed", "the file does not hold the link of a line");
  }
  return rows.sort(([[a]], [[b]]) => Number(a === "creds") - Number(b === "creds"));
}
