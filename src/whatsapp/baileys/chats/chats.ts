/** What the other side of a chat sees of the line: typing, and that it has read. */
import { isLidUser, isPnUser, jidNormalizedUser, type WAPresence, type WASocket } from "@whiskeysockets/baileys";
import type { Runtime } from "../../../runtime.ts";
import type { Chats, ChatState } from "../../contacts.ts";
import { answerOf } from "../answer.ts";

const PRESENCE: Readonly<Record<ChatState, WAPresence>> = {
  typing: "composing",
  recording: "recording",
  paused: "paused",
};

interface ChatsOptions {
  socket: Pick<WASocket, "sendPresenceUpdate" | "presenceSubscribe" | "readMessages" | "signalRepository">;
  runtime: Pick<Runtime, "clock">;
}

export function makeChats({ socket, runtime }: ChatsOptions): Chats {
  const { clock } = runtime;
  return {
    async show(chat, state) {
      // Whoever shows what they do gets to see what the other side does.
      await answerOf(clock, socket.presenceSubscribe(chat), "take the wish to hear of the chat");
      await answerOf(clock, socket.sendPresenceUpdate(PRESENCE[state], chat), "take the state of the chat");
    },

    async namesOf(chat) {
      const { lidMapping } = socket.signalRepository;
      const other = isPnUser(chat)
        ? await answerOf(clock, lidMapping.getLIDForPN(chat), "name the chat")
        : isLidUser(chat)
        ? await answerOf(clock, lidMapping.getPNForLID(chat), "name the chat")
        : null;
      return other ? [chat, jidNormalizedUser(other)] : [chat];
    },

    async read(messages) {
      const keys = messages.map(({ chat, networkId, participant }) => ({
        id: networkId,
        remoteJid: chat,
        fromMe: false,
        ...(participant === null ? {} : { participant }),
      }));
      if (keys.length > 0) await answerOf(clock, socket.readMessages(keys), "take what was read");
    },
  };
}
