/** Keys and types of the rows of verifications. */
import { key, prefix } from "../store/kv.ts";

export const VERIFICATION_STATUSES = ["pending", "passed", "failed", "expired"] as const;

/** A question to a person, who answers by sending a code to a line. */
export interface Verification {
  id: string;
  accountId: string;
  sessionId: string;
  /** Digits of the line's number. */
  phone: string;
  code: string;
  /** Shown before the code in the text that the person sends. */
  purpose: string | null;
  /** Digits of the only number that passes; null for any. */
  asked: string | null;
  status: (typeof VERIFICATION_STATUSES)[number];
  /** Why it failed: a stable code. */
  reason: string | null;
  /** Who sent the code. */
  from: { number: string | null; chat: string } | null;
  createdAt: number;
  expiresAt: number;
}

export const verificationKeys = {
  verification: (accountId: string, id: string) => key<Verification>("verification", accountId, id),
  ofAccount: (accountId: string) => prefix<Verification>("verification", accountId),
  /** Finds a pending verification by the code that its line receives. */
  code: (lineId: string, code: string) => key<{ accountId: string; id: string }>("verification_code", lineId, code),
  /** When the next step is due, Unix ms: the end of a pending verification, the removal of one that has ended. */
  due: (at: number, id: string) => key<{ accountId: string }>("verification_due", at, id),
  allDue: () => prefix<{ accountId: string }>("verification_due"),
  /** The number of the account's pending verifications. */
  open: (accountId: string) => key<bigint>("verifications_open", accountId),
};
