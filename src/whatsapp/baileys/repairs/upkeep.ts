/**
 * Repairs of what Baileys 7.0.0-rc14 does by itself on a connection: refilling one-time keys, announcing a new name,
 * requesting what the network kept while the line was offline.
 */
import { type BinaryNode, getBinaryNodeChild, S_WHATSAPP_NET, type WASocket } from "@whiskeysockets/baileys";
import { detached } from "../../../base/retry.ts";
import type { Log, Runtime } from "../../../runtime.ts";

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

/** As many as the library requests. */
const WINDOW = 100;
/**
 * If the network counts differently, so that nothing has come for this long, the next ones are requested: after each
 * request without an answer later. Its word that the backlog has ended may never come (Baileys issue 2810), so requests
 * end within a minute of the last stanza.
 */
const QUIET_MS = [2_000, 10_000, 30_000];

export type Backlog = ReturnType<typeof makeBacklog>;

/**
 * Requests the backlog. The network delivers as many stanzas as were requested, and after them nothing, not even new
 * ones, until the rest is requested. The library only requests the first hundred, so a line that missed more would stay
 * deaf, and miss more at each login.
 */
export function makeBacklog(socket: Pick<WASocket, "sendNode">, { clock, log }: Pick<Runtime, "clock" | "log">) {
  let received = 0;
  /** Requests since a stanza of the backlog last came. */
  let unanswered = 0;
  /** When the last stanza of the backlog came or was requested, Unix ms; null before the first and after the last. */
  let lastAt: number | null = null;

  function request(): void {
    lastAt = clock.now();
    const content = [{ tag: "offline_batch", attrs: { count: String(WINDOW) } }];
    void detached(socket.sendNode({ tag: "ib", attrs: {}, content }), (failure) => {
      log.debug(failure, "missed messages could not be requested");
    });
  }

  return {
    /** Reads incoming stanzas. */
    watch(stanza: BinaryNode): void {
      if (stanza.tag === "ib" && getBinaryNodeChild(stanza, "offline")) lastAt = null;
      if (stanza.attrs.offline === undefined) return;
      lastAt = clock.now();
      unanswered = 0;
      if (++received % WINDOW === 0) request();
    },
    /** Called every few seconds. */
    look(): void {
      if (lastAt === null || clock.now() - lastAt < (QUIET_MS[unanswered] ?? Infinity)) return;
      unanswered++;
      request();
    },
  };
}
