/**
 * The file in which a line moves to another gateway, sealed with a passphrase. Whoever brings one may have made it, so
 * it is read by a schema, and refused as a whole.
 */
import { Buffer } from "node:buffer";
import { z } from "zod";
import { unlessMalformed } from "../base/retry.ts";
import { readProxy } from "../egress/proxy_address.ts";
import { OperatorError } from "../errors.ts";
import { fitsOneCommit, loadOf } from "../message/send_command.ts";
import { bodyOf, previewOf, remoteFile } from "../message/content.ts";
import { PRIORITIES } from "../message/message.ts";
import type { Random } from "../runtime.ts";
import { makeSeal, passphraseKey, unsealed } from "../store/seal.ts";
import type { Line } from "./line.ts";
import type { MovedMessage } from "./moved_queue.ts";
import type { Pacing } from "./runner/pacing.ts";

/** A transfer that cannot be done; the message says why, and what to do. */
export class TransferError extends OperatorError {
  override name = "TransferError";

  constructor(message: string, options?: ErrorOptions) {
    super("transfer_failed", message, options);
  }
}

export interface Exported extends Pick<Line, "name" | "phone" | "restriction"> {
  /** Identifies this export, so that one file creates at most one line in a gateway. */
  id: string;
  /** The line's proxy, with its login; null for none. */
  proxy: string | null;
  pacing: Pacing | null;
  isQueuePaused: boolean;
  /** The copy of the link, in base64. */
  link: string;
  queue: MovedMessage[];
}

const MAGIC = Buffer.from("paloma line 1\n");
const SALT_BYTES = 16;
/** Size limit of waiting messages with their files: the file is built in memory. */
export const MOST_QUEUE_BYTES = 256 * 1024 ** 2;
/** The queue in base64, with the link. */
const MOST_FILE_BYTES = 2 * MOST_QUEUE_BYTES;

/** Returns the file. */
export function sealLineFile(
  exported: Exported,
  passphrase: string,
  random: Random,
  keyOf = passphraseKey,
): Uint8Array {
  const salt = random.bytes(SALT_BYTES);
  const seal = makeSeal(keyOf(passphrase, salt), random);
  return Buffer.concat([MAGIC, salt, seal.seal(new TextEncoder().encode(JSON.stringify(exported)))]);
}

/** Returns what the file holds. Throws TransferError. */
export function openLineFile(file: Uint8Array, passphrase: string, random: Random, keyOf = passphraseKey): Exported {
  if (Buffer.compare(file.subarray(0, MAGIC.length), MAGIC) !== 0) {
    throw new TransferError("this is not an export file of a line");
  }
  if (file.length > MOST_FILE_BYTES) throw new TransferError("the file is larger than any export of a line");
  const salt = file.subarray(MAGIC.length, MAGIC.length + SALT_BYTES);
  const seal = makeSeal(keyOf(passphrase, salt), random);
  const plain = unsealed(seal, file.subarray(MAGIC.length + SALT_BYTES));
  if (plain === null) throw new TransferError("the passphrase is another one, or the file is damaged");
  const text = new TextDecoder().decode(plain);
  return exportedOf(unlessMalformed(() => JSON.parse(text), undefined));
}

/** Returns the value as what a file may hold. Throws TransferError. */
export function exportedOf(value: unknown): Exported {
  const { success, data, error } = LineFile.safeParse(value);
  if (success) return data as unknown as Exported;
  const [{ path, message }] = error.issues as [z.core.$ZodIssue];
  throw new TransferError(`the file does not hold a line: ${path.join(".") || "it"}: ${message}`);
}

const Text = z.string().max(1_000);
/** Unix ms, or any other count. */
const Count = z.int().min(0).max(8.64e15);
const Base64 = z.base64();
const Digits = z.string().regex(/^\d{5,20}$/, "must be digits");

const MovedPacing = z.object({
  lastDepartureAt: Count,
  nextDepartureAt: Count,
  departing: Text.optional(),
  departures: Count.optional(),
  firstDepartureAt: Count.optional(),
  newChats: z.object({ day: z.iso.date(), started: Count }).optional(),
});

/** The rest of a message is what its kind makes of it. */
const WaitingMessage = z.looseObject({
  id: z.string().regex(/^msg_[\da-z]{26}$/, "must be the id of a message"),
  networkId: z.string().regex(/^[\dA-F]{8,64}$/, "must be an id of the network"),
  position: Count,
  order: Count.optional(),
  priority: z.enum(PRIORITIES),
  sendAt: Count.nullable(),
  to: z.string().min(1).max(100).regex(/^[\w.@-]+$/, "must be a recipient"),
  attempts: z.int().min(0).max(100),
  proposal: z.object({ keyId: Text, by: Text, approvedAt: Count.optional() }).optional(),
  expiresAt: Count,
  deliveredAt: Count.nullable(),
  readAt: Count.nullable(),
}).refine(isReadable, "must be a message that can be sent");

/** Whether every use of the content works. */
function isReadable(message: unknown): boolean {
  const { content, manner } = message as MovedMessage["message"];
  return unlessMalformed(() => {
    previewOf(content);
    // A file that was not fetched yet has no body.
    if (remoteFile(content) === null) bodyOf(content, (fileId) => fileId);
    return fitsOneCommit(loadOf([{ content, ...(manner && { manner }) }]));
  }, false);
}

const LineFile = z.object({
  id: z.string().regex(/^[\w-]{1,100}$/, "must be the id of an export"),
  name: z.string().min(1).max(100),
  phone: Digits.nullable(),
  restriction: z.object({ kind: Text, until: Count.nullable() }).nullable(),
  proxy: Text.refine((text) => unlessMalformed(() => readProxy(text), null), "must be the address of a proxy")
    .nullable(),
  pacing: MovedPacing.nullable(),
  isQueuePaused: z.boolean(),
  link: Base64,
  queue: z.array(z.object({ message: WaitingMessage, file: Base64.nullable() })),
});
