/**
 * Connects everything that a socket receives for people: messages through the journal and the inbox, notices, receipts.
 */
import type { AuthenticationCreds, WASocket } from "@whiskeysockets/baileys";
import type { ReadOutside } from "../../../inspect/inspector.ts";
import { within } from "../../../base/within.ts";
import type { Runtime } from "../../../runtime.ts";
import { untilStored } from "../../../store/kv.ts";
import type { ConnectionEvents } from "../../connection.ts";
import type { GroupNow } from "../../incoming.ts";
import { hasAdmin } from "../chats/groups.ts";
import { ownJids } from "../jids.ts";
import type { MediaHost } from "../media_host.ts";
import type { GroupCache } from "../outgoing/group_cache.ts";
import type { Moves } from "../outgoing/moves.ts";
import type { LineRows } from "../rows.ts";
import type { Cause } from "./cause.ts";
import { takeHistory } from "./history_sync.ts";
import { type Alone, type Inbox, makeInbox } from "./inbox.ts";
import type { Journal, JournalEntry, Leftovers, UndecryptedEntry } from "./journal.ts";
import { incomingMedia } from "./media.ts";
import { takeNotices } from "./notices.ts";
import { makePhoneOf, type PhoneOf } from "./numbers.ts";
import type { DisappearingTimers } from "../disappearing.ts";
import { findOriginal } from "./message_secret.ts";
import { takeReceipts } from "./receipts.ts";

/** Short, because the chat waits for the answer. */
const GROUP_ANSWER_MS = 5_000;

interface ReceivingOptions extends LineRows {
  socket: WASocket;
  creds: AuthenticationCreds;
  groups: GroupCache;
  timers: Pick<DisappearingTimers, "learn">;
  moves: Pick<Moves, "take">;
  /** The group in its current state. Throws if the network does not return it. */
  groupNow: (id: string) => Promise<GroupNow>;
  host: MediaHost;
  journal: Journal;
  /** As for the inbox. */
  alone: Alone;
  setAside(): void;
  readOutside: ReadOutside;
  /** What the journal still holds from earlier connections. */
  left: Leftovers;
  /** Marks queries about a received message as the gateway's own: by then the message is in the journal. */
  cause: Pick<Cause, "own">;
  events: Pick<ConnectionEvents, "message" | "notice" | "receipt">;
  isOpen(): boolean;
  isOver(): boolean;
  broken(): void;
  runtime: Runtime;
}

/**
 * Starts receiving. Once the line is logged in, what earlier connections left in the journal is handed over as well.
 */
export function takeIncoming(options: ReceivingOptions): Inbox {
  const { socket, creds, groups, host, journal, left, cause, events, isOpen, isOver, broken, runtime } = options;
  const { alone, setAside } = options;
  const { clock } = runtime;
  const askPhone = makePhoneOf({ socket, groups, runtime });
  const phoneOf: PhoneOf = (lid, chat) => cause.own(() => askPhone(lid, chat));
  const mediaSource = { host, runtime, socket: () => isOpen() ? socket : null };

  async function isAdmin(group: string, addresses: readonly string[]): Promise<boolean> {
    const asked = cause.own(() => groups.metadata(group)).catch(() => null);
    const metadata = await within(clock, GROUP_ANSWER_MS, asked);
    return metadata !== null && metadata !== "late" && hasAdmin(metadata, addresses);
  }

  const inbox = makeInbox({
    journal,
    runtime,
    alone,
    setAside,
    receive: (message, settle) => events.message(message, settle),
    context: {
      get me() {
        return ownJids(creds);
      },
      clock,
      findOriginal: (networkId) => findOriginal(options, networkId),
      timer: options.timers.learn,
      phoneOf,
      isLost: async (networkId) => inbox.waitsFor(networkId) || await journal.wasUndecrypted(networkId),
      isAdmin,
      media: (message, kind, file) => incomingMedia(mediaSource, message, { kind, file }),
      history: (part) =>
        takeHistory(part, {
          keys: socket.authState.keys,
          host,
          readOutside: options.readOutside,
          runtime,
        }),
    },
  });
  for (const entry of [...left.decrypted, ...left.undecrypted].sort((a, b) => cameAt(a) - cameAt(b))) {
    if ("plaintext" in entry) inbox.leftOver(entry);
    // The sender's second attempt may be among the missed messages, so the wait for it starts again.
    else inbox.undecrypted({ ...entry, since: clock.now() });
  }
  takeNotices({
    socket,
    phoneOf: (lid, chat) => untilStored(() => isOver() ? ended() : phoneOf(lid, chat), { clock }),
    groupNow: (id) => cause.own(() => options.groupNow(id)),
    receive: (notice) => isOver() ? ended() : events.notice(notice),
    changed: groups.forget,
    moved: options.moves.take,
    runtime,
  });
  takeReceipts({
    socket,
    creds,
    isOver,
    broken,
    receive: (receipt) => events.receipt(receipt),
    readByOwner: (reading) => events.notice(reading),
    runtime,
  });
  return inbox;
}

/** When the stanza came, Unix ms. */
function cameAt(entry: JournalEntry | UndecryptedEntry): number {
  return "plaintext" in entry ? entry.sequence / 1000 : entry.since;
}

function ended(): Promise<never> {
  return Promise.reject(new Error("the connection has ended"));
}
