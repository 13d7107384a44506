/**
 * The web panel: `/panel` serves the pages, `/panel/api` their data. The pages of an account call the public API on
 * behalf of the signed-in person (`api/act.ts`).
 */
import type { Hono } from "@hono/hono";
import type { ApiEnv } from "../http/api/route.ts";
import { addAccountPages } from "./api/account.ts";
import { addAct } from "./api/act.ts";
import { addChats } from "./api/chats.ts";
import { addCustomerLink } from "./api/customer_link.ts";
import { addEntry } from "./api/entry.ts";
import { makeGuard } from "./api/guard.ts";
import { addLive } from "./api/live.ts";
import { addMe } from "./api/me.ts";
import { addOperatorPages } from "./api/operator.ts";
import { addPeople } from "./api/people.ts";
import type { PanelDeps, Parts } from "./api/parts.ts";
import { makeAudit } from "./audit.ts";
import { makeLinks } from "./logins/links.ts";
import { makePasskeys } from "./logins/passkeys.ts";
import { makePasswords } from "./logins/password.ts";
import { makePeople } from "./logins/people.ts";
import { makeSignIns } from "./logins/sign_ins.ts";
import { makeThrottle } from "./logins/throttle.ts";
import { makeUsage } from "./usage.ts";
import { addPages } from "./web.ts";

export function addPanel(app: Hono<ApiEnv>, deps: PanelDeps): void {
  const { kv, seal, runtime } = deps;
  const people = makePeople({ kv, seal, runtime });
  const signIns = makeSignIns({ kv, people, runtime });
  const passwords = makePasswords(runtime.random);
  const passkeys = makePasskeys({ kv, people, runtime });
  const links = makeLinks({ kv, runtime });
  const throttle = makeThrottle(runtime.clock);
  const audit = makeAudit({ kv, runtime });
  const guard = makeGuard({ ...deps, app, people, signIns, audit });

  const act = addAct({ ...deps, app, guard });
  const usage = makeUsage(deps);

  const parts: Parts = { ...deps, guard, act, audit, links, passkeys, passwords, people, signIns, throttle, usage };
  addEntry(parts);
  addMe(parts);
  addAccountPages(parts);
  addPeople(parts);
  addChats(parts);
  addCustomerLink(parts);
  addLive(parts);
  addOperatorPages(parts);
  addPages(app);
  // Relative, so that it also works below a proxy's path.
  app.get("/", (c) => c.req.header("accept")?.includes("text/html") ? c.redirect("panel") : c.notFound());
}
