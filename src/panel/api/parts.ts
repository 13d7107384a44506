/** What the panel's own API works with: the services of the public one, and what knows of people. */
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
  /** Calls back after each change of the line; returns the function that ends it. */
  watchLine(lineId: string, look: () => void): () => void;
  /** As `watchLine`, for every line. */
  watchAllLines(look: () => void): () => void;
  publicUrl: string | null;
  /** The folder of the store and the files; null where the store is on a server. */
  dataDir: string | null;
  /** The version of WhatsApp Web that is announced; null: the latest. */
  webVersion: string | null;
  /** `http://HOST:PORT/panel`, as links name it. */
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
