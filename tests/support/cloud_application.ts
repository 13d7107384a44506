/** An application that knows the official Cloud API, as its users write one: it verifies what comes, and keeps it. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { Json } from "../../src/cli/client.ts";
import { type Received, Receiver } from "./receiver.ts";
import type { Stage } from "./stage.ts";
import { until } from "./until.ts";

export const TOKEN = "what the application expects";

/** An application: it answers the challenge and keeps the changes that were posted. */
export class Application {
  readonly receiver: Receiver;
  secret = "";
  webhookId = "";

  private constructor(receiver: Receiver) {
    this.receiver = receiver;
  }

  static async start(): Promise<Application> {
    return new Application(await Receiver.start(answerAsApplication));
  }

  async register({ api }: Pick<Stage, "api">, more: Json = {}): Promise<Json> {
    const asked = { url: this.receiver.url, format: "cloud", verifyToken: TOKEN, ...more };
    const { data } = await api.call("POST", "/webhooks", asked);
    Object.assign(this, { secret: data.secret, webhookId: data.id });
    return data;
  }

  /** The values that were posted, oldest first; fails if a signature is wrong. */
  values(): Json[] {
    return this.receiver.requests.filter(({ body }) => body !== "").map(({ body, headers }) => {
      const digest = createHmac("sha256", this.secret).update(body).digest("hex");
      assert.equal(headers["x-hub-signature-256"], `sha256=${digest}`);
      assert.match(body, /^[\x20-\x7e]+$/);
      const { entry: [{ changes: [{ field, value }] }] } = JSON.parse(body);
      return { field, ...value };
    });
  }

  message(what: string, fits: (message: Json) => boolean): Promise<Json> {
    const messages = () =>
      this.values().flatMap(({ messages = [], message_echoes = [] }) => [...messages, ...message_echoes]);
    return until(() => Promise.resolve(messages().find(fits) ?? null), what);
  }

  statuses(id: string): Json[] {
    return this.values().flatMap(({ statuses = [] }) => statuses).filter((status) => status.id === id);
  }
}

export function answerAsApplication(response: ServerResponse, { path }: Received): void {
  const query = new URL(path, "http://application").searchParams;
  const isExpected = query.get("hub.mode") === null || query.get("hub.verify_token") === TOKEN;
  response.writeHead(isExpected ? 200 : 403).end(isExpected ? query.get("hub.challenge") ?? "" : "");
}
