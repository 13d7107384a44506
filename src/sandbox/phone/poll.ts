/** Votes on polls: encrypted under the poll's secret, so that only those who saw the poll can read them. */
import { proto } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { createCipheriv, createHash, createHmac } from "node:crypto";
import type { Random } from "../../runtime.ts";

interface Ballot {
  pollId: string;
  /** 32 bytes. */
  secret: Uint8Array;
  /** Jids without device, in the form that the poll's chat uses. */
  creator: string;
  voter: string;
  /** Names of the options chosen. */
  options: readonly string[];
}

/** The encrypted vote: content of `pollUpdateMessage.vote`. */
export function encryptVote(
  { pollId, secret, creator, voter, options }: Ballot,
  random: Random,
): proto.Message.IPollEncValue {
  const selectedOptions = options.map((name) => createHash("sha256").update(name).digest());
  const vote = proto.Message.PollVoteMessage.encode({ selectedOptions }).finish();
  const extracted = createHmac("sha256", Buffer.alloc(32)).update(secret).digest();
  const use = Buffer.concat([Buffer.from(pollId), Buffer.from(creator), Buffer.from(voter), Buffer.from("Poll Vote")]);
  const key = createHmac("sha256", extracted).update(use).update(Buffer.of(1)).digest();
  const encIv = random.bytes(12);
  const cipher = createCipheriv("aes-256-gcm", key, encIv).setAAD(Buffer.from(`${pollId}\0${voter}`));
  return { encPayload: Buffer.concat([cipher.update(vote), cipher.final(), cipher.getAuthTag()]), encIv };
}
