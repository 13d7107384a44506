/**
 * The web panel: `/panel` serves the pages, `/panel/api` their data. The pages of an account call the public API on
 * behalf of the signed-in person (`api/act.ts`).
 */
import type { Hono } from "@hono/hono";
import type { ApiEnv } from "../http/api/route.ts";
import { addAccountPages } from "./api/account.ts";
import { addAttention } from "./api/attention.ts";
import { addCustomerLink } from "./api/customer_link.ts";
import { addEntry } from "./api/entry.ts";
import { addLive } from "./api/live.ts";
import { addMaintenance } from "./api/maintenance.ts";
import { addMe } from "./api/me.ts";
import { addOperatorPages } from "./api/operator.ts";
import { addPeople } from "./api/people.ts";
import { makeParts, type PanelDeps } from "./api/parts.ts";
import { addRecipients } from "./api/recipients.ts";
import { addPages } from "./web.ts";

export function addPanel(app: Hono<ApiEnv>, deps: PanelDeps): void {
  const parts = makeParts(app, deps);
  addEntry(parts);
  addMe(parts);
  addAccountPages(parts);
  addRecipients(parts);
  addPeople(parts);
  addAttention(parts);
  addCustomerLink(parts);
  addLive(parts);
  addOperatorPages(parts);
  addMaintenance(parts);
  addPages(app, async (c) => (await parts.guard.visitorOf(c))?.person ?? null);
  // Relative, so that it also works below a proxy's path.
  app.get("/", (c) => isBrowser(c.req.raw.headers) ? c.redirect("panel") : c.notFound());
}

/** Whether a browser asks, also one that accepts anything: behind some proxies, and in checks of a link. */
function isBrowser(headers: Headers): boolean {
  return headers.get("accept")?.includes("text/html") || headers.get("sec-fetch-mode") === "navigate" ||
    headers.get("user-agent")?.startsWith("Mozilla/") || false;
}
