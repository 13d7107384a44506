/** All that a socket hears for people, put together: messages by the journal and the inbox, notices, receipts. */
import type { AuthenticationCreds, WASocket } from "@whiskeysockets/baileys";
import { within } from "../../../base/within.ts";
import type { Runtime } from "../../../runtime.ts";
import { untilStored } from "../../../store/retry.ts";
import type { ConnectionEvents } from "../../connection.ts";
import type { GroupNow } from "../../notices.ts";
import { hasAdmin } from "../chats/members.ts";
import { ownJids } from "../jids.ts";
import type { MediaHost } from "../media_host.ts";
import type { GroupCache } from "../outgoing/group_cache.ts";
import type { SentStore } from "../outgoing/sent_store.ts";
import type { LineRows } from "../rows.ts";
import type { Cause } from "./cause.ts";
import { takeHistory } from "./history.ts";
import { type Inbox, makeInbox } from "./inbox.ts";
import type { Journal, Leftovers } from "./journal.ts";
import { incomingMedia } from "./media.ts";
import { takeNotices } from "./notices.ts";
import { makePhoneOf, type PhoneOf } from "./numbers.ts";
import { makeFindPoll } from "./polls.ts";
import { takeReceipts } from "./receipts.ts";

/** A chat waits for what is asked of its group: it is short. */
const GROUP_ANSWER_MS = 5_000;

interface ReceivingOptions extends LineRows {
  socket: WASocket;
  creds: AuthenticationCreds;
  groups: GroupCache;
  /** The group as the network has it now. Throws where it does not say. */
  groupNow: (id: string) => Promise<GroupNow>;
  sent: SentStore;
  host: MediaHost;
  journal: Journal;
  /** What the journal keeps of earlier connections. */
  left: Leftovers;
  /** What is asked about something that came in is in the journal by then: it counts as the gateway's own. */
  cause: Pick<Cause, "own">;
  events: Pick<ConnectionEvents, "message" | "notice" | "receipt">;
  isOpen(): boolean;
  isOver(): boolean;
  broken(): void;
  runtime: Runtime;
}

/** Takes what comes in from now on, and what is left of earlier connections once the line is logged in. */
export function takeIncoming(options: ReceivingOptions): Inbox {
  const { socket, creds, groups, host, journal, left, cause, events, isOpen, isOver, broken, runtime } = options;
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
    receive: (message, settle) => events.message(message, settle),
    context: {
      get me() {
        return ownJids(creds);
      },
      clock,
      findPoll: makeFindPoll(options),
      phoneOf,
      isAdmin,
      media: (message, kind, file) => incomingMedia(mediaSource, message, { kind, file }),
      history: (part) => takeHistory(part, { keys: socket.authState.keys, host, runtime }),
    },
  });
  for (const entry of left.decrypted) inbox.decrypted(entry);
  // The sender's second attempt may be among what was missed: it has its time once more.
  for (const entry of left.undecrypted) inbox.undecrypted({ ...entry, since: clock.now() });
  takeNotices({
    socket,
    phoneOf: (lid, chat) => untilStored(() => isOver() ? ended() : phoneOf(lid, chat), { clock }),
    groupNow: (id) => cause.own(() => options.groupNow(id)),
    receive: (notice) => isOver() ? ended() : events.notice(notice),
    changed: groups.forget,
    runtime,
  });
  takeReceipts({ socket, creds, isOver, broken, receive: (receipt) => events.receipt(receipt), runtime });
  return inbox;
}

function ended(): Promise<never> {
  return Promise.reject(new Error("the connection has ended"));
}
