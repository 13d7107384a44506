/** The parts that the panel's API is made of: the services of the public API, and the panel's own. */
import type { Hono } from "@hono/hono";
import type { Plans } from "../../account/plans.ts";
import type { ApiEnv } from "../../http/api/route.ts";
import type { Services } from "../../http/api/services.ts";
import type { QueuedCount } from "../../message/history/counts.ts";
import { makeAudit } from "../audit.ts";
import { makeLinks } from "../logins/links.ts";
import { makePasskeys } from "../logins/passkeys.ts";
import type { Passwords } from "../logins/password.ts";
import { makePeople } from "../logins/people.ts";
import { makeSignIns } from "../logins/sign_ins.ts";
import { makeThrottle } from "../logins/throttle.ts";
import type { RunCommand } from "../commands.ts";
import { makeUsage } from "../usage.ts";
import { addAct } from "./act.ts";
import { makeGuard } from "./guard.ts";

export interface PanelDeps extends Services {
  plans: Plans;
  queuedCount: QueuedCount;
  passwords: Passwords;
  /** Calls `look` after each change of the line; returns a function that stops watching. */
  watchLine(lineId: string, look: () => void): () => void;
  /** Like `watchLine`, for all lines. */
  watchAllLines(look: () => void): () => void;
  /** Runs a command of the command line. */
  run: RunCommand;
  /** The folder of the backups that are made here. */
  backupDir: string;
  /** The folder of store and files; null if the store is on a server. */
  dataDir: string | null;
  /** The version of WhatsApp Web that is announced to the network; null for the latest. */
  webVersion: string | null;
  /** Returns `http://HOST:PORT/panel`, the base of links. */
  panelUrl(): string;
}

export type Parts = ReturnType<typeof makeParts>;

export function makeParts(app: Hono<ApiEnv>, deps: PanelDeps) {
  const { kv, seal, runtime } = deps;
  const people = makePeople({ kv, seal, runtime });
  const signIns = makeSignIns({ kv, people, runtime });
  const audit = makeAudit({ kv, runtime });
  const guard = makeGuard({ ...deps, app, people, signIns, audit });
  return {
    ...deps,
    people,
    signIns,
    audit,
    guard,
    act: addAct({ ...deps, app, guard }),
    links: makeLinks({ kv, runtime }),
    passkeys: makePasskeys({ kv, people, runtime }),
    throttle: makeThrottle(runtime.clock),
    usage: makeUsage(deps),
  };
}
