/**
 * The web panel: `/panel` serves the pages, `/panel/api` what they ask. The pages of an account use the public API in
 * the name of the person who is signed in (`api/act.ts`).
 */
import type { Hono } from "@hono/hono";
import type { Plans } from "../account/plans.ts";
import type { ApiEnv } from "../http/api/context.ts";
import type { Services } from "../http/api/services.ts";
import type { QueuedCount } from "../message/history/counts.ts";
import type { Kv } from "../store/kv.ts";
import type { Seal } from "../store/seal.ts";
import { addAccountPages, addSearch } from "./api/account.ts";
import { addAct } from "./api/act.ts";
import { addChats } from "./api/chats.ts";
import { addCustomerLink } from "./api/customer_link.ts";
import { addEntry } from "./api/entry.ts";
import { makeGuard } from "./api/guard.ts";
import { addLive, type LiveDeps } from "./api/live.ts";
import { addMe } from "./api/me.ts";
import { addOperatorPages } from "./api/operator.ts";
import { addPeople } from "./api/people.ts";
import { addPlans } from "./api/plans.ts";
import { makeAudit } from "./audit.ts";
import { makeLinks } from "./logins/links.ts";
import { makePasskeys } from "./logins/passkeys.ts";
import { makePasswords } from "./logins/password.ts";
import { makePeople } from "./logins/people.ts";
import { makeSignIns } from "./logins/sign_ins.ts";
import { makeThrottle } from "./logins/throttle.ts";
import { makeUsage } from "./usage.ts";
import { addPages } from "./web.ts";

interface PanelDeps extends Services, Pick<LiveDeps, "watchLine" | "watchAllLines"> {
  kv: Kv;
  seal: Seal;
  plans: Plans;
  queuedCount: QueuedCount;
  publicUrl: string | null;
  dataDir: string;
  /** The version of WhatsApp Web that is set; null: the latest. */
  webVersion: string | null;
  /** `http://HOST:PORT/panel`, as links name it. */
  panelUrl(): string;
}

export function addPanel(app: Hono<ApiEnv>, deps: PanelDeps): void {
  const { kv, seal, runtime } = deps;
  const { clock } = runtime;
  const people = makePeople({ kv, seal, runtime });
  const signIns = makeSignIns({ kv, people, runtime });
  const passwords = makePasswords(runtime.random);
  const passkeys = makePasskeys({ people, runtime });
  const links = makeLinks({ kv, runtime });
  const throttle = makeThrottle(clock);
  const audit = makeAudit({ kv, runtime });
  const guard = makeGuard({ ...deps, app, people, signIns, audit });

  addEntry({ ...deps, guard, people, passwords, passkeys, signIns, links, throttle, audit });
  addMe({ guard, people, passwords, passkeys, signIns, throttle, runtime });
  const act = addAct({ ...deps, app, guard, clock });
  addAccountPages({ ...deps, guard, audit, clock, usage: makeUsage(deps) });
  addPeople({ ...deps, guard, people, links });
  addSearch({ guard, act });
  addChats({ ...deps, guard, act });
  addCustomerLink({ ...deps, guard, links });
  addLive({ ...deps, guard });
  addOperatorPages({ ...deps, guard, audit, clock });
  addPlans({ ...deps, guard });
  addPages(app);
  // Relative, so that it also works below a proxy's path.
  app.get("/", (c) => c.req.header("accept")?.includes("text/html") ? c.redirect("panel") : c.notFound());
}
