/** The line's groups, and what sending to one needs to know of it. */
import { areJidsSameUser, type GroupMetadata, type WASocket } from "@whiskeysockets/baileys";
import type { Runtime } from "../../../runtime.ts";
import { type Group, NetworkRefusal, NetworkTimeout } from "../../connection.ts";
import { within } from "../../../base/within.ts";
import type { OwnJids } from "../incoming/receipts.ts";

/** Who is in a group may change without a word to a device that was away. */
const KEPT_MS = 10 * 60 * 1000;
/** A big group's metadata is some 100 KiB; a line seldom sends to many at once. */
const GROUPS_KEPT = 50;
const ANSWER_MS = 30_000;

export interface Groups {
  /** Throws NetworkRefusal, NetworkTimeout. */
  list(me: OwnJids): Promise<Group[]>;
  /** From the cache, else from the network: who gets a message. Throws what the library throws. */
  metadata(jid: string): Promise<GroupMetadata>;
  /** From the cache alone. */
  cached(jid: string): Promise<GroupMetadata | undefined>;
  /** The group is not as it was. */
  forget(jid: string): void;
}

export function makeGroups(socket: () => WASocket, runtime: Pick<Runtime, "clock">): Groups {
  const { clock } = runtime;
  const kept = new Map<string, { at: number; metadata: GroupMetadata }>();

  function keep(metadata: GroupMetadata): GroupMetadata {
    kept.delete(metadata.id);
    kept.set(metadata.id, { at: clock.now(), metadata });
    for (const oldest of kept.keys()) {
      if (kept.size <= GROUPS_KEPT) break;
      kept.delete(oldest);
    }
    return metadata;
  }

  function cached(jid: string): GroupMetadata | undefined {
    const entry = kept.get(jid);
    return entry && clock.now() - entry.at < KEPT_MS ? entry.metadata : undefined;
  }

  return {
    async list(me) {
      const asked = within(clock, ANSWER_MS, socket().groupFetchAllParticipating());
      const answer = await asked.catch((cause) => {
        throw new NetworkRefusal("The messaging network could not list the groups.", { cause });
      });
      if (answer === "late") {
        throw new NetworkTimeout("The messaging network did not list the groups in time.");
      }
      return Object.values(answer).map((metadata) => toGroup(metadata, me));
    },
    metadata: async (jid) => cached(jid) ?? keep(await socket().groupMetadata(jid)),
    cached: (jid) => Promise.resolve(cached(jid)),
    forget: (jid) => void kept.delete(jid),
  };
}

function toGroup(metadata: GroupMetadata, me: OwnJids): Group {
  const own = [me.id, me.lid].filter((jid) => jid !== undefined);
  const isOwn = (jid: string | undefined) => jid !== undefined && own.some((mine) => areJidsSameUser(jid, mine));
  const self = metadata.participants.find(({ id, lid, phoneNumber }) => [id, lid, phoneNumber].some(isOwn));
  return {
    id: metadata.id,
    name: metadata.subject ?? "",
    description: metadata.desc ?? "",
    size: metadata.size ?? metadata.participants.length,
    isAdmin: Boolean(self?.admin),
    createdAt: (metadata.creation || 0) * 1000,
  };
}
