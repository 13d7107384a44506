/** The dependencies of the panel's API: the services of the public API, and the panel's own. */
import type { Services } from "../../http/api/services.ts";
import type { QueuedCount } from "../../message/history/counts.ts";
import type { Plans } from "../../account/plans.ts";
import type { Kv } from "../../store/kv.ts";
import type { Seal } from "../../store/seal.ts";
import type { Audit } from "../audit.ts";
import type { Links } from "../logins/links.ts";
import type { Passkeys } from "../logins/passkeys.ts";
import type { Passwords } from "../logins/password.ts";
import type { People } from "../logins/people.ts";
import type { SignIns } from "../logins/sign_ins.ts";
import type { Throttle } from "../logins/throttle.ts";
import type { Usage } from "../usage.ts";
import type { Act } from "./act.ts";
import type { Guard } from "./guard.ts";

export interface PanelDeps extends Services {
  kv: Kv;
  seal: Seal;
  plans: Plans;
  queuedCount: QueuedCount;
  /** Calls `look` after each change of the line; returns a function that stops watching. */
  watchLine(lineId: string, look: () => void): () => void;
  /** Like `watchLine`, for all lines. */
  watchAllLines(look: () => void): () => void;
  publicUrl: string | null;
  /** The folder of store and files; null if the store is on a server. */
  dataDir: string | null;
  /** The version of WhatsApp Web that is announced to the network; null for the latest. */
  webVersion: string | null;
  /** Returns `http://HOST:PORT/panel`, the base of links. */
  panelUrl(): string;
}

export interface Parts extends PanelDeps {
  guard: Guard;
  act: Act;
  audit: Audit;
  links: Links;
  passkeys: Passkeys;
  passwords: Passwords;
  people: People;
  signIns: SignIns;
  throttle: Throttle;
  usage: Usage;
}
