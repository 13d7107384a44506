/** The audit log's entries of commands, which have no login. */
import { makeAudit } from "../panel/audit.ts";
import type { Data } from "./data.ts";

/** Records what a command has done, to an account or (null) to the gateway. */
export async function note({ kv, runtime }: Pick<Data, "kv" | "runtime">, action: string, accountId: string | null) {
  await makeAudit({ kv, runtime }).write({ personId: null, login: null, address: "", accountId, action });
}
