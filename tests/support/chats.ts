/** The index of chats for tests, on a network that knows no second address of anybody, unless one is given. */
import { type ChatIndex, makeChatIndex } from "../../src/chat/chat_index.ts";
import type { Kv } from "../../src/store/kv.ts";
import type { Network } from "../../src/whatsapp/network.ts";

const UNKNOWN = { lidOf: () => Promise.resolve(null), numberOf: () => Promise.resolve(null) };

export function chatsOn(kv: Kv, network: Pick<Network, "lidOf" | "numberOf"> = UNKNOWN): ChatIndex {
  return makeChatIndex({ kv, network });
}
