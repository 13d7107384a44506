/**
 * People as the network describes them, the blocklist, the line's own profile, and presence and read receipts in chats.
 */
import {
  type BinaryNode,
  getBinaryNodeChild,
  getBinaryNodeChildren,
  isLidUser,
  isPnUser,
  jidNormalizedUser,
  type WAPresence,
  type WASocket,
} from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";
import type { Runtime } from "../../../runtime.ts";
import type { BusinessCard, Chats, ChatState, Contacts } from "../../chats.ts";
import type { Incoming } from "../../incoming.ts";
import { NetworkRefusal } from "../../connection.ts";
import { answerOf, askAboutUsers, askMex, childrenOf, iq, type MexQuery } from "../stanza.ts";
import { numberIn, type OwnJids } from "../jids.ts";
import type { WithFiles } from "../incoming/app_state.ts";
import type { Recipients } from "../outgoing/addressing.ts";
import { pictureQuery } from "./groups.ts";
import type { Presence } from "./presence.ts";

const NAMES_KEPT = 5_000;
/** The codes for "there is nothing" and for "nothing that the line may see". */
const HIDDEN: ReadonlySet<number | null> = new Set([401, 403, 404]);

const ABOUT_CHANGE: MexQuery = ["9152604461510864", "xwa2_update_text_status"];
const ABOUT_LIST: MexQuery = ["24072923595647473", "xwa2_text_status_list"];
const OWN_USERNAME: MexQuery = ["25347099718279209", "xwa2_username_get"];

/** The push names of people, learned from their messages on this connection. */
export function makeNames() {
  const names = new LRUCache<string, string>(atMost(NAMES_KEPT));
  return {
    note({ fromMe, pushName, number }: Pick<Incoming, "fromMe" | "pushName" | "number">): void {
      if (!fromMe && pushName && number) names.set(number, pushName);
    },
    of: (number: string) => names.get(number) ?? null,
  };
}

interface ContactsOptions {
  socket: WASocket;
  recipients: Pick<Recipients, "check">;
  names: ReturnType<typeof makeNames>;
  me: () => OwnJids & { name: string | null };
  withFiles: WithFiles;
  runtime: Pick<Runtime, "clock">;
}

export function makeContacts({ socket, recipients, names, me, withFiles, runtime }: ContactsOptions): Contacts {
  const ask = <T>(asked: Promise<T>, what: string) => answerOf(runtime.clock, asked, what);

  /** Resolves to null if the network refuses to answer; if codes are given, with one of these. */
  async function unlessRefused<T>(asked: Promise<T>, codes?: ReadonlySet<number | null>): Promise<T | null> {
    try {
      return await asked;
    } catch (error) {
      if (error instanceof NetworkRefusal && (codes === undefined || codes.has(error.code))) return null;
      throw error;
    }
  }

  /** Asks as WhatsApp Web does, and where that gives nothing, as older clients do. */
  async function about(jid: string): Promise<string | null> {
    const what = "return the contact's about text";
    const asked = askMex<{ text?: string | null }[]>(socket, { input: [{ jid }] }, ABOUT_LIST);
    const [listed] = await unlessRefused(ask(asked, what)) ?? [];
    if (listed?.text) return listed.text;
    const [answer] = await ask(socket.fetchStatus(jid), what) ?? [];
    return (answer?.status as { status?: string | null } | undefined)?.status || null;
  }

  async function changeAbout(text: string): Promise<void> {
    const what = "change the profile's about text";
    const input = { text, ephemeral_duration_sec: 0 };
    const { result } = await ask(askMex<{ result?: string }>(socket, { input }, ABOUT_CHANGE), what);
    if (result !== "SUCCESS") throw new NetworkRefusal(`The messaging network did not ${what}.`, { code: null });
    // As WhatsApp Web does; by itself this changes nothing.
    await ask(socket.updateProfileStatus(text), what).catch(() => {});
  }

  /** Null also where the network does not answer such a query. */
  async function ownUsername(): Promise<string | null> {
    const asked = askMex<{ username_info?: { username?: string } | null } | null>(socket, {}, OWN_USERNAME);
    const answer = await unlessRefused(ask(asked, "return the profile's username"));
    return answer?.username_info?.username ?? null;
  }

  const picture = async (jid: string) =>
    await unlessRefused(ask(socket.profilePictureUrl(jid, "image"), "give the picture"), HIDDEN) ?? null;

  async function business(jid: string): Promise<BusinessCard | null> {
    const profile = await unlessRefused(ask(socket.getBusinessProfile(jid), "give the business profile"), HIDDEN);
    if (!profile) return null;
    const { description, category, address, email, website } = profile;
    return {
      description: description || null,
      category: category ?? null,
      address: address ?? null,
      email: email ?? null,
      websites: website,
    };
  }

  async function setBlocked(number: string, action: "block" | "unblock"): Promise<void> {
    const { exists, jid } = await recipients.check(number);
    if (!exists) throw new NetworkRefusal("The number is not on the messaging app.", { code: 404 });
    await ask(socket.updateBlockStatus(jid, action), `${action} the number`);
  }

  return {
    async find(username, key) {
      const asked: BinaryNode[] = [
        { tag: "contact", attrs: { addressing_mode: "lid" } },
        { tag: "business", attrs: {}, content: [{ tag: "verified_name", attrs: {} }] },
      ];
      const named = { tag: "contact", attrs: { username, ...(key === null ? {} : { pin: key }) } };
      const users = [{ tag: "user", attrs: {}, content: [named] }];
      const [user] = await ask(askAboutUsers(socket, "interactive", { asked, users }), "look the username up");
      const [contact] = childrenOf(user, "contact");
      const exists = contact?.attrs.type === "in" &&
        ![user, contact].some((node) => childrenOf(node, "error").length > 0);
      const jid = exists && user?.attrs.jid ? jidNormalizedUser(user.attrs.jid) : null;
      return { exists, jid, needsKey: exists && jid === null };
    },

    async card(number) {
      const { exists, jid } = await recipients.check(number);
      if (!exists) return { exists, jid, lid: null, name: null, about: null, pictureUrl: null, business: null };
      const { lidMapping } = socket.signalRepository;
      const [lid, words, pictureUrl, card] = await Promise.all([
        ask(lidMapping.getLIDForPN(jid), "resolve the contact's address"),
        about(jid),
        picture(jid),
        business(jid),
      ]);
      const name = names.of(number);
      return { exists, jid, lid: lid && jidNormalizedUser(lid), name, about: words, pictureUrl, business: card };
    },

    block: (number) => setBlocked(number, "block"),
    unblock: (number) => setBlocked(number, "unblock"),

    async blocklist() {
      const asked = socket.query(iq({ type: "get", xmlns: "blocklist" }));
      const answer: BinaryNode = await ask(asked, "return the blocklist");
      const items = getBinaryNodeChildren(getBinaryNodeChild(answer, "list"), "item");
      return await Promise.all(items.map(async ({ attrs: { jid = "", pn_jid: phone } }) => {
        const number = numberIn(jid, phone, phone ? null : await socket.signalRepository.lidMapping.getPNForLID(jid));
        return { jid: jidNormalizedUser(jid), number };
      }));
    },

    async profile() {
      const { id, name } = me();
      const jid = jidNormalizedUser(id);
      const [username, words, pictureUrl] = await Promise.all([ownUsername(), about(jid), picture(jid)]);
      return { name, username, about: words, pictureUrl };
    },

    async changeProfile({ name, about, picture }) {
      if (about !== undefined) await changeAbout(about);
      if (picture !== undefined) await ask(socket.query(pictureQuery(null, picture)), "change the picture");
      if (name !== undefined) await rename(name);
    },
  };

  /** Announces the name with the line's presence, and to the owner's other devices if the app state can be changed. */
  async function rename(name: string): Promise<void> {
    const { creds } = socket.authState;
    if (creds.myAppStateKeyId) {
      await ask(withFiles(() => socket.updateProfileName(name)), "change the name").catch(() => {});
    }
    // The library may hold the event back for a while, but the presence carries the name as it is now.
    creds.me = { ...creds.me!, name };
    Object.assign(creds, { renamedAt: runtime.clock.now() } satisfies Renamed);
    socket.ev.emit("creds.update", { me: creds.me });
    await ask(socket.sendPresenceUpdate("unavailable"), "accept the new name");
  }
}

/** In the line's credentials: when the line was last renamed here, Unix ms. */
export interface Renamed {
  renamedAt?: number;
}

const PRESENCE: Readonly<Record<ChatState, WAPresence>> = {
  typing: "composing",
  recording: "recording",
  paused: "paused",
};

interface ChatsOptions extends Pick<ContactsOptions, "socket" | "runtime"> {
  presence: Pick<Presence, "appear">;
}

export function makeChats({ socket, presence, runtime: { clock } }: ChatsOptions): Chats {
  return {
    async show(chat, state) {
      // In return for its own state, the line gets to see the other side's presence.
      await answerOf(clock, presence.appear(), "accept the line's presence");
      await answerOf(clock, socket.presenceSubscribe(chat), "subscribe to the chat's presence");
      await answerOf(clock, socket.sendPresenceUpdate(PRESENCE[state], chat), "accept the chat state");
    },

    async namesOf(chat) {
      const { lidMapping } = socket.signalRepository;
      const asked = isPnUser(chat) ? lidMapping.getLIDForPN(chat) : isLidUser(chat) && lidMapping.getPNForLID(chat);
      const other = asked && await answerOf(clock, asked, "resolve the chat's address");
      return other ? [chat, jidNormalizedUser(other)] : [chat];
    },

    async read(messages) {
      const keys = messages.map(({ chat, networkId, participant }) => ({
        id: networkId,
        remoteJid: chat,
        fromMe: false,
        ...(participant === null ? {} : { participant }),
      }));
      if (keys.length > 0) await answerOf(clock, socket.readMessages(keys), "accept the read receipts");
    },
  };
}
