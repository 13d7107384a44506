/** What became of a message that could not leave. */
import { isJidGroup } from "@whiskeysockets/baileys";
import { errorName } from "../../../base/detached.ts";
import type { Log } from "../../../runtime.ts";
import { StoreError } from "../../../store/kv.ts";
import { NetworkRefusal, NetworkTimeout } from "../../network_error.ts";
import type { Outgoing, Unsent } from "../../outgoing.ts";
import { queryError, statusOf, TIMED_OUT } from "../answer.ts";
import { OriginalGone } from "./encode.ts";
import { UploadFailed } from "./media_upload.ts";
import { NoDevice } from "./reach.ts";

export const OFFLINE: Unsent = { kind: "hold", detail: "The line is not connected." };

/** The outcome of a message that surely did not leave, on a connection that is open. */
export function unsent({ networkId, to }: Outgoing, error: unknown, log: Log): Unsent {
  const code = queryError(error);
  if (isJidGroup(to) && code !== null && [401, 403, 404].includes(code)) {
    return { kind: "refused", code: "group_not_accessible", detail: "The line is not in this group." };
  }
  if (error instanceof OriginalGone) {
    return { kind: "refused", code: "original_gone", detail: "The message to forward is not kept any more." };
  }
  log.warn({ networkId, error: errorName(error) }, "a message could not be prepared");
  return { kind: "retry", detail: describe(error) };
}

/**
 * Whether the library failed before it wrote the frame. Its key transaction commits after the frame, and a write to
 * the socket may fail or hang half-way: those, and only those, leave the question open.
 */
export function surelyUnsent(error: unknown): boolean {
  if (error instanceof StoreError) return false;
  const code = error instanceof Error && "code" in error ? error.code : null;
  const socketFailed = typeof code === "string" && /^E[A-Z]/.test(code);
  return !socketFailed && statusOf(error) !== TIMED_OUT;
}

/** One sentence without the library's own words, which may hold addresses or content. */
export function describe(error: unknown): string {
  if (error instanceof NetworkRefusal || error instanceof NetworkTimeout) return error.message;
  if (error instanceof StoreError) return "The storage could not be used.";
  const code = queryError(error);
  if (code !== null) return `The network answered a query with error ${code}.`;
  if (error instanceof NoDevice) return "The recipient has no device with keys now.";
  if (error instanceof UploadFailed) return "The file could not be uploaded.";
  return "The message could not be prepared.";
}
