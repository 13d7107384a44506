/** The port `Connection` on Baileys: the calls that a line takes while its socket lives (`socket_life.ts`). */
import { type Connection, type ConnectionEvents, NetworkRefusal, PasskeyNotRequested } from "../connection.ts";
import type { Outgoing, Prepared } from "../outgoing.ts";
import type { Cause } from "./incoming/cause.ts";
import type { LineSocket } from "./socket.ts";
import { ping } from "./liveness.ts";
import { type LifeOptions, type Shared, SocketLife } from "./socket_life.ts";

interface LineConnection extends Connection {
  /** Resolves when the connection has ended and no longer writes. */
  readonly ended: Promise<void>;
}

/** Starts to connect as soon as the line's last connection has released the keys. */
export function connectLine(shared: Shared, options: LifeOptions, events: ConnectionEvents): LineConnection {
  const life = new SocketLife(shared, options, events);
  const { cause, signs } = life;

  /** Throws NetworkRefusal. */
  function open(): LineSocket {
    if (!life.open) throw new NetworkRefusal("The session is not connected to the messaging network.");
    return life.open;
  }

  /** A part of the port whose calls go to the open connection. Throws NetworkRefusal if there is none. */
  function whileOpen<Part extends keyof LineSocket["talk"]>(part: Part): Connection[Part] {
    return new Proxy({} as Connection[Part], {
      get: (_, name) => (...given: unknown[]) =>
        cause.own(async () => {
          const calls: object = open().talk[part];
          return await Reflect.get(calls, name)(...given);
        }),
    });
  }

  function passkey(): LineSocket["pairing"]["passkey"] {
    if (!life.parts || life.isOver) throw new PasskeyNotRequested();
    return life.parts.pairing.passkey;
  }

  return {
    ended: life.ended,
    prepare: (message, signal) =>
      life.open
        ? prepare(life.open, cause, { message, signal })
        : Promise.resolve({ kind: "hold", detail: "The line is not connected." }),
    async allows(to) {
      const { parts } = life;
      return parts ? await cause.own(() => parts.restrictions.allows(to)) : true;
    },
    async health() {
      const { lastFrameAt, lastReceivedAt, lastSentAt, undecryptable, versionExpiresAt } = signs.liveness;
      const [pingMs, newChats] = life.open
        ? await Promise.all([ping(life.open.socket, shared.runtime.clock), life.open.restrictions.newChats()])
        : [null, null];
      const webVersion = { ...life.parts?.version ?? shared.versions.known(), expiresAt: versionExpiresAt };
      return { lastFrameAt, lastReceivedAt, lastSentAt, pingMs, newChats, undecryptable, webVersion };
    },
    signPasskey: async (assertion) => await passkey().sign(assertion),
    confirmPasskey: async () => await passkey().confirm(),
    checkNumber: async (number) => await cause.own(() => open().recipients.check(number)),
    groups: whileOpen("groups"),
    contacts: whileOpen("contacts"),
    chats: whileOpen("chats"),
    close: () => life.close(),
    logout: () => life.logout(),
  };
}

async function prepare(
  { sender }: LineSocket,
  cause: Cause,
  { message, signal }: { message: Outgoing; signal: AbortSignal },
): Promise<Prepared> {
  const prepared = await cause.own(() => sender.prepare(message, signal));
  if (prepared.kind !== "ready") return prepared;
  const { keep, type, leavesNext, send } = prepared;
  const own = <Answer>(run: () => Answer) => () => cause.own(run);
  return { kind: "ready", keep, type: own(type), leavesNext: own(leavesNext), send: own(send) };
}
