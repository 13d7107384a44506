/**
 * A webhook during development: a receiver on loopback that checks the signatures of each request as a client would,
 * and may forward it unchanged to an endpoint that is being written.
 */
import { Buffer } from "node:buffer";
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { listenOn } from "../base/listening.ts";
import { type Client, reasonOf } from "./client.ts";
import { Exit } from "./output.ts";

/** The gateway gives an endpoint 10 s. */
const FORWARD_MS = 9_000;
/** Headers that belong to the connection and are not forwarded. */
const OF_THE_CONNECTION = new Set(["host", "connection", "content-length", "transfer-encoding", "keep-alive"]);

export interface WebhookRequest {
  /** `webhook-id`. */
  id: string;
  body: string;
  /** Whether `x-webhook-signature` and `webhook-signature` are right. */
  signature: boolean;
  standardSignature: boolean;
  /** Status of the endpoint that it was forwarded to; null: not forwarded; 502: the endpoint could not be reached. */
  forwarded: number | null;
}

interface TemporaryWebhookOptions {
  api: Client;
  events: string[] | null;
  sessionId: string | null;
  /** 0: any free port. */
  port: number;
  forward: string | null;
  received(request: WebhookRequest): void;
}

/** Starts the receiver and registers the webhook. Throws Exit 1 if the port is taken or the gateway refuses. */
export async function openTemporaryWebhook(options: TemporaryWebhookOptions) {
  const { api, events, sessionId, port, forward, received } = options;
  /** The gateway may call before it has answered with the secret. */
  const registered = Promise.withResolvers<string>();

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const header = (name: string) => String(request.headers[name] ?? "");
    const forwarded = forward === null ? null : await handOn(forward, { request, body });
    response.writeHead(forwarded ?? 200).end();
    const secret = await registered.promise;
    received({
      id: header("webhook-id"),
      body: body.toString("utf8"),
      signature: isSame(createHmac("sha256", secret).update(body).digest("hex"), header("x-webhook-signature")),
      standardSignature: header("webhook-signature").split(" ").some((one) =>
        isSame(standardSignature(secret, { id: header("webhook-id"), at: header("webhook-timestamp"), body }), one)
      ),
      forwarded,
    });
  }

  const server = createServer((request, response) => {
    take(request, response).catch(() => response.destroy());
  });
  const bound = await listenOn(server, { port }).catch((error) => {
    throw new Exit(1, `Cannot listen on port ${port}: ${reasonOf(error)}`);
  });
  const url = `http://127.0.0.1:${bound}/`;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  try {
    const subscription = { url, ...(events ? { events } : {}), ...(sessionId ? { sessionId } : {}) };
    const { data } = await api.call("POST", "/webhooks", subscription);
    registered.resolve(data.secret);
    return {
      id: data.id as string,
      url,
      secret: data.secret as string,
      /** Removes the webhook and stops listening. Throws Exit 1 if the gateway does not remove it. */
      async end(): Promise<void> {
        try {
          await api.call("DELETE", `/webhooks/${data.id}`);
        } catch (error) {
          throw new Exit(
            1,
            `Webhook ${data.id} was not removed: ${reasonOf(error)}\n` +
              `If it is still there, remove it in the panel, or by DELETE /v1/webhooks/${data.id}`,
          );
        } finally {
          close();
        }
      },
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** Forwards the request; resolves to the endpoint's status. */
async function handOn(url: string, { request, body }: { request: IncomingMessage; body: Buffer }): Promise<number> {
  const headers = Object.entries(request.headers).filter(([name]) => !OF_THE_CONNECTION.has(name));
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: headers.map(([name, value]): [string, string] => [name, String(value)]),
      body: new Uint8Array(body),
      redirect: "manual",
      signal: AbortSignal.timeout(FORWARD_MS),
    });
    await response.body?.cancel();
    return response.status;
  } catch {
    return 502;
  }
}

/** https://www.standardwebhooks.com: id, time and body, keyed with the decoded secret. */
function standardSignature(secret: string, { id, at, body }: { id: string; at: string; body: Buffer }): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  return `v1,${createHmac("sha256", key).update(`${id}.${at}.`).update(body).digest("base64")}`;
}

function isSame(expected: string, given: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(given)];
  return a.length === b.length && timingSafeEqual(a, b);
}
