/** What follows a finished handshake: a companion logs in by its Noise key, or registers to be linked. */
import { Buffer } from "node:buffer";
import { proto } from "@whiskeysockets/baileys";
import type { CompanionSocket, SocketOwner } from "./companion_socket.ts";
import type { Companion } from "../world/directory.ts";
import { streamError } from "../world/faults.ts";
import type { ClientFinish } from "./noise.ts";
import { readPairingData } from "./linking/proof.ts";
import { Registration, type RegistrationOptions } from "./linking/registration.ts";
import { openSession } from "./session.ts";
import { element } from "../world/stanza.ts";
import type { Switchboard } from "../world/switchboard.ts";

/** Takes a connection whose handshake is done; the answer takes its stanzas. */
export function admit(finish: ClientFinish, socket: CompanionSocket, options: RegistrationOptions): SocketOwner {
  const payload = proto.ClientPayload.decode(finish.payload);
  const noisePublic = Buffer.from(finish.staticPublic).toString("hex");
  if (payload.devicePairingData) {
    const bundle = readPairingData(payload.devicePairingData);
    if (!bundle) return refuse(socket, 400);
    const registration = new Registration(socket, { noisePublic, bundle }, options);
    registration.start();
    return registration;
  }
  const { network } = options;
  const account = network.directory.account(String(payload.username ?? ""));
  const companion = account?.companions.get(payload.device ?? 0);
  const refused = account && network.faults.take(account.number, "refuse_login");
  if (refused) return refuse(socket, Number(refused));
  // Unlinked, or another device's key: the link is gone for good.
  if (!companion || companion.noisePublic !== noisePublic) return refuse(socket, 401);
  companion.logins = payload.lc ?? null;
  return meetFault(companion, socket, network) ?? openSession(companion, socket, network);
}

/** A stream fault that was set while the line was away ends its next connection. */
function meetFault(companion: Companion, socket: CompanionSocket, network: Switchboard): SocketOwner | null {
  const fault = network.faults.takePending(companion.account.number);
  if (!fault) return null;
  if (fault === "unavailable") return refuse(socket, 503);
  if (fault === "logout") {
    network.removeCompanion(companion);
    return refuse(socket, 401);
  }
  const error = streamError(fault);
  if (error) socket.end(error);
  else socket.cut();
  return deaf;
}

function refuse(socket: CompanionSocket, reason: number): SocketOwner {
  socket.end(element("failure", { reason: String(reason), location: "sbx" }));
  return deaf;
}

/** Owner of a connection that is over. */
const deaf: SocketOwner = { onStanza: () => {}, onClose: () => {} };
