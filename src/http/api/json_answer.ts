/**
 * How JSON is answered. On a connection it is written straight to it: as a Response it would be read back as a stream,
 * which costs a third of what a small request costs in all.
 */
import { Buffer } from "node:buffer";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { ApiContext } from "./context.ts";

export interface JsonAnswer {
  status: number;
  body: unknown;
  /** Beside those that the request has earned on its way (`c.var.headers`). */
  headers: Readonly<Record<string, string>>;
}

/** The answer; for a request within the process a Response of its own. */
export function answerJson(c: ApiContext, { status, body, headers }: JsonAnswer): Response {
  const text = JSON.stringify(body);
  const head = { ...c.get("headers"), ...headers };
  const outgoing = c.env?.outgoing;
  if (!outgoing) return new Response(text, { status, headers: head });
  outgoing.writeHead(status, { ...head, "content-length": Buffer.byteLength(text) });
  outgoing.end(text);
  c.set("written", status);
  return RESPONSE_ALREADY_SENT;
}
