/** A receiver of webhooks on loopback that keeps what it got and answers as the test says. */
import { Buffer } from "node:buffer";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { listenOn } from "../../src/base/listening.ts";
import { connectionsOf } from "./closing.ts";

export interface Received {
  headers: IncomingHttpHeaders;
  body: string;
  path: string;
  /** Real time, for latencies. */
  at: number;
}

/** Answers the `number`th request (from 1). Not ending the response lets the sender hang. */
export type Answer = (response: ServerResponse, received: Received, number: number) => void;

export const answering = (status: number, headers: Record<string, string> = {}): Answer => (response) => {
  response.writeHead(status, headers);
  response.end("ok");
};

export interface TlsIdentity {
  cert: string;
  key: string;
}

export class Receiver {
  readonly requests: Received[] = [];
  readonly port: number;
  /** May be changed while it runs. */
  answer: Answer;
  readonly #close: () => Promise<void>;

  private constructor(port: number, answer: Answer, close: () => Promise<void>) {
    this.port = port;
    this.answer = answer;
    this.#close = close;
  }

  static async start(answer: Answer = answering(200), tls?: TlsIdentity): Promise<Receiver> {
    const responses = new Set<ServerResponse>();
    const server = tls ? createTlsServer(tls, handle) : createServer(handle);
    const connections = connectionsOf(server);
    const port = await listenOn(server);
    const receiver = new Receiver(port, answer, () => {
      for (const response of responses) response.destroy();
      return connections.close();
    });
    function handle(request: IncomingMessage, response: ServerResponse): void {
      const chunks: Buffer[] = [];
      responses.add(response);
      response.on("error", () => {});
      response.on("close", () => responses.delete(response));
      request.on("error", () => {});
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const body = Buffer.concat(chunks).toString("utf8");
        const received = { headers: request.headers, body, path: request.url ?? "", at: performance.now() };
        receiver.requests.push(received);
        receiver.answer(response, received, receiver.requests.length);
      });
    }
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hook`;
  }

  /** The events that were received, parsed, in the order of arrival. */
  get events(): { event: string; sessionId: string; sessionName: string; data: Record<string, unknown> }[] {
    return this.requests.map(({ body }) => JSON.parse(body));
  }

  close(): Promise<void> {
    return this.#close();
  }
}
