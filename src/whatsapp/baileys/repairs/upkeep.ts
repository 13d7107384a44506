/** Repairs of what Baileys 7.0.0-rc14 does by itself on a connection: refilling one-time keys, announcing a new name. */
import { type BinaryNode, getBinaryNodeChild, S_WHATSAPP_NET, type WASocket } from "@whiskeysockets/baileys";
import { detached } from "../../../base/retry.ts";
import type { Log } from "../../../runtime.ts";

/** Keys uploaded when the network runs low. The library uploads 5, which a few new contacts use up. */
const REFILL = 50;

/**
 * Returns a watch that refills the one-time keys when the network says that they run low. Must see stanzas before the
 * library does, which then waits for this upload instead of its own.
 */
export function makeRefill(
  socket: () => Pick<WASocket, "uploadPreKeys">,
  log: Log,
): (stanza: BinaryNode) => void {
  return (stanza) => {
    const { tag, attrs } = stanza;
    if (tag !== "notification" || attrs.type !== "encrypt" || attrs.from !== S_WHATSAPP_NET) return;
    if (!getBinaryNodeChild(stanza, "count")) return;
    void detached(
      socket().uploadPreKeys(REFILL),
      (failure) => log.warn(failure, "one-time keys could not be refilled"),
    );
  };
}

/**
 * Announces a new name of the account as "unavailable". The library announces it without a type, which means that the
 * owner is online, and silences the phone's notifications. It announces a name only if the credentials lack it.
 */
export function announceNames(socket: Pick<WASocket, "ev" | "authState" | "sendPresenceUpdate">, log: Log): void {
  const { ev, authState: { creds } } = socket;
  const emit = ev.emit.bind(ev);
  ev.emit = (event, data) => {
    const me = event === "creds.update" && "me" in Object(data) ? (data as Partial<typeof creds>).me : undefined;
    if (me?.name && me.name !== creds.me?.name) {
      creds.me = { ...creds.me, ...me };
      void detached(socket.sendPresenceUpdate("unavailable"), (failure) => {
        log.debug(failure, "a new name could not be announced");
      });
    }
    return emit(event, data);
  };
}
