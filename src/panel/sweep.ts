/** Removes the panel's expired rows: sign-ins, unused links, answered challenges, and old entries of the audit log. */
import { deleteKeys } from "../store/delete_range.ts";
import type { Key, Kv } from "../store/kv.ts";
import { isOver } from "./logins/sign_ins.ts";
import { panelKeys } from "./rows.ts";

const AUDIT_MS = 365 * 24 * 60 * 60_000;

/** Removes the expired rows; resolves to their number. */
export function sweepPanel(kv: Kv, now: number, signal: AbortSignal): Promise<number> {
  return deleteKeys(kv, oldRows(kv, now), { signal });
}

/** Removes the panel's rows of an account that is being deleted: members, links, counts. Its audit log stays. */
export async function removePanelRows(kv: Kv, accountId: string): Promise<void> {
  await deleteKeys(kv, rowsOf(kv, accountId));
}

async function* rowsOf(kv: Kv, ofAccount: string): AsyncGenerator<Key> {
  for await (const { key, value } of kv.list({ prefix: panelKeys.people() })) {
    const { id, accountId, login, passkeys } = value;
    if (accountId !== ofAccount) continue;
    for await (const { key } of kv.list({ prefix: panelKeys.signInsOf(id) })) yield key;
    for (const passkey of passkeys) yield panelKeys.passkey(passkey.id);
    yield panelKeys.login(login);
    yield key;
  }
  for await (const { key, value } of kv.list({ prefix: panelKeys.links() })) {
    if ("accountId" in value && value.accountId === ofAccount) yield key;
  }
  for await (const { key } of kv.list({ prefix: panelKeys.usageOf(ofAccount) })) yield key;
  yield panelKeys.usageCursor(ofAccount);
}

async function* oldRows(kv: Kv, now: number): AsyncGenerator<Key> {
  for await (const { key, value } of kv.list({ prefix: panelKeys.signIns() })) if (isOver(value, now)) yield key;
  for await (const { key, value } of kv.list({ prefix: panelKeys.links() })) if (now >= value.expiresAt) yield key;
  for await (const { key, value } of kv.list({ prefix: panelKeys.allAnswered() })) if (now >= value) yield key;
  for await (const { key, value } of kv.list({ prefix: panelKeys.audits() })) {
    // The entries are sorted by time.
    if (now - value.at < AUDIT_MS) break;
    yield key;
  }
}
