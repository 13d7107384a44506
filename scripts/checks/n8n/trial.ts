/** Who and what the n8n of this check is tried on. */
import type { LinkedLine, Stage } from "../../../tests/support/stage.ts";
import type { Door, Outside } from "./outside.ts";
import type { N8n } from "./server.ts";

export const LINE = "447700900001";
export const CUSTOMER = "447700900123";
export const APPROVER = "447700900124";
/** Is asked, and never answers. */
export const SILENT = "447700900125";

export interface Trial {
  stage: Stage;
  line: LinkedLine;
  n8n: N8n;
  outside: Outside;
  door: Door;
}

/** The phone of that number writes to the line. */
export async function write({ stage }: Trial, from: string, text: string): Promise<void> {
  await stage.control.call("POST", `/phones/${from}/messages`, { to: LINE, text });
}

/** Posts to a Webhook node. */
export async function post({ n8n }: Trial, path: string, body: unknown): Promise<void> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${n8n.url}/webhook/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  const said = await answer.text();
  if (!answer.ok) throw new Error(`n8n answered ${path} with ${answer.status}: ${said}`);
}
