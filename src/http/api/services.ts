/** The services that the HTTP layer needs from the layers below. `app.ts` supplies them; tests supply fakes. */
import type { Accounts } from "../../account/accounts.ts";
import type { Callers } from "../../account/callers.ts";
import type { AccountKeys } from "../../account/keys.ts";
import type { Idempotency, RepeatableRequest } from "../../account/idempotency.ts";
import type { Budgets } from "../edge/budgets.ts";
import type { Erasures } from "../../erasure/erasures.ts";
import type { EventLog } from "../../event/log.ts";
import type { Forecast } from "../../line/forecast.ts";
import type { Lines } from "../../line/lines.ts";
import type { Amendments } from "../../line/amendments.ts";
import type { References } from "../../line/references.ts";
import type { Lookups } from "../../line/lookups.ts";
import type { Unread } from "../../line/seen.ts";
import type { ServeMedia } from "../../media/serve.ts";
import type { DiskShares, SharedMediaStore } from "../../media/fair_shares.ts";
import type { Accept } from "../../message/accept.ts";
import type { Queued } from "../../message/queued.ts";
import type { Accepted } from "../../message/send.ts";
import type { OptOuts } from "../../message/opt_outs.ts";
import type { History } from "../../message/history/history.ts";
import type { QuotaView } from "../../message/history/counts.ts";
import type { Metrics } from "../../ops/metrics.ts";
import type { Runtime } from "../../runtime.ts";
import type { TallyOf } from "../../message/receipts.ts";
import type { DeliveryLog } from "../../webhook/delivery_log.ts";
import type { Webhooks } from "../../webhook/webhooks.ts";

export interface Services {
  runtime: Runtime;
  metrics: Metrics;
  accounts: Accounts;
  callers: Callers;
  keys: AccountKeys;
  idempotency: Idempotency;
  lines: Lines;
  accept: Accept;
  /** `findReplay`. */
  replay(request: RepeatableRequest): Promise<Accepted | null>;
  optOuts: OptOuts;
  erasures: Erasures;
  references: References;
  history: History;
  queued: Queued;
  amendments: Amendments;
  tallyOf: TallyOf;
  forecast: Forecast;
  lookups: Lookups;
  unread: Unread;
  quotaView: QuotaView;
  media: SharedMediaStore;
  diskShares: Pick<DiskShares, "assertRoom">;
  serveMedia: ServeMedia;
  events: EventLog;
  webhooks: Webhooks;
  deliveries: DeliveryLog;
  budgets: Budgets;
  /** CIDRs of proxies whose X-Forwarded-For is trusted. */
  trustedProxies: readonly string[];
  /** Resolves if the storage accepts a write; rejects or hangs if it does not. */
  probe(): Promise<void>;
  /** Aborts when the gateway stops: event streams end, and `/readyz` answers 503. */
  stopping: AbortSignal;
}
