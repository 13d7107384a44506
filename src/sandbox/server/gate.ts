/** The network's entrance: a WebSocket server on loopback. Companions log in by Noise key, or register to be linked. */
import { proto } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { createServer } from "node:http";
// @ts-types="@types/ws"
import { WebSocketServer } from "ws";
import { listenOn } from "../../base/listening.ts";
import type { Companion } from "../world/directory.ts";
import { breakOff } from "../world/faults.ts";
import type { KeyBundle } from "../world/key_store.ts";
import { element, uintOf } from "../world/stanza.ts";
import type { Switchboard } from "../world/switchboard.ts";
import { type CompanionSocket, serveSocket, type SocketOwner } from "./companion_socket.ts";
import { Registration, type RegistrationOptions } from "./linking/registration.ts";
import type { ClientFinish, NoiseIdentity } from "./noise.ts";
import { openSession } from "./session.ts";

/** Starts listening; port 0 chooses a free one. Rejects if the port is in use. */
export async function openGate(
  { port, identity, options }: { port: number; identity: NoiseIdentity; options: RegistrationOptions },
) {
  const { runtime } = options.network;
  const { web } = options.network;
  const http = createServer((request, response) => {
    if (request.url === "/sw.js" && web.current !== null) return response.end(serviceWorkerOf(web.current));
    response.writeHead(request.url === "/sw.js" ? 503 : 426).end();
  });
  const server = new WebSocketServer({ server: http, perMessageDeflate: false });
  server.on("connection", (ws) => {
    serveSocket(ws, { identity, runtime, admit: (finish, socket) => admit(finish, socket, options) });
  });
  // The WebSocket server forwards the HTTP server's errors, which `listenOn` handles.
  server.once("error", () => {});
  const bound = await listenOn(http, { port });
  return {
    url: `ws://127.0.0.1:${bound}/ws/chat`,
    close: () =>
      new Promise<void>((resolve) => {
        for (const ws of server.clients) ws.terminate();
        server.close();
        http.close(() => resolve());
        // A client that has not sent a complete request would keep the server open.
        http.closeAllConnections();
      }),
  };
}

/** The page of the web client that names its version. */
function serviceWorkerOf(revision: number): string {
  return `self.__swData=JSON.parse(/*BTDS*/"{\\"dynamic_data\\":{\\"SiteData\\":{\\"client_revision\\":${revision}}}}");`;
}

/** Admits a connection whose handshake is done; returns the receiver of its stanzas. */
function admit(finish: ClientFinish, socket: CompanionSocket, options: RegistrationOptions): SocketOwner {
  const payload = proto.ClientPayload.decode(finish.payload);
  const noisePublic = Buffer.from(finish.staticPublic).toString("hex");
  if ((payload.userAgent?.appVersion?.tertiary ?? 0) < options.network.web.oldest) return refuse(socket, 405);
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
  // The companion is unlinked, or another device uses its address: the link is permanently gone.
  if (!companion || companion.noisePublic !== noisePublic) return refuse(socket, 401);
  companion.logins = payload.lc ?? null;
  return meetFault(companion, socket, network) ?? openSession(companion, socket, network);
}

/** Ends the connection if a stream fault was queued for the line; returns null if none was. */
function meetFault(companion: Companion, socket: CompanionSocket, network: Switchboard): SocketOwner | null {
  const fault = network.faults.take(companion.account.number, "stream");
  if (!fault) return null;
  if (fault === "unavailable") return refuse(socket, 503);
  if (fault === "logout") {
    network.removeCompanion(companion);
    return refuse(socket, 401);
  }
  breakOff(socket, fault);
  return endedOwner;
}

function refuse(socket: CompanionSocket, reason: number): SocketOwner {
  socket.end(element("failure", { reason: String(reason), location: "sbx" }));
  return endedOwner;
}

/** Receiver of a connection that has ended. */
const endedOwner: SocketOwner = { onStanza: () => {}, onClose: () => {} };

/** Reads the pairing data of a `ClientPayload`; returns null if it is incomplete. */
function readPairingData(data: proto.ClientPayload.IDevicePairingRegistrationData): KeyBundle | null {
  const { eRegid, eIdent, eSkeyId, eSkeyVal, eSkeySig } = data;
  if (!eRegid || eIdent?.length !== 32 || !eSkeyId || eSkeyVal?.length !== 32 || !eSkeySig) return null;
  const signedPreKey = { id: uintOf(eSkeyId), publicKey: eSkeyVal, signature: eSkeySig };
  return { registrationId: uintOf(eRegid), identityKey: eIdent, signedPreKey, preKeys: [] };
}
