/** The services that the resources use, made from what the process has. */
import type { Accounts } from "../../account/accounts.ts";
import type { Callers } from "../../account/callers.ts";
import { Idempotency, type RepeatableRequest } from "../../account/idempotency.ts";
import { makeAccountKeys } from "../../account/keys.ts";
import type { SafeFetch } from "../../egress/safe_fetch.ts";
import { makeErasures } from "../../erasure/erasures.ts";
import { makeChatIndex } from "../../chat/chat_index.ts";
import type { EventLog } from "../../event/event_log.ts";
import { makeLines } from "../../line/lines.ts";
import { makeAmendments } from "../../line/amendments.ts";
import { laneOf } from "../../line/chats.ts";
import { ChatHistory } from "../../line/chat_history.ts";
import { makeForecast } from "../../line/forecast.ts";
import type { SessionNames } from "../../line/line_row.ts";
import type { LiveLines } from "../../line/live.ts";
import type { Lookups } from "../../line/lookups.ts";
import { References } from "../../line/references.ts";
import { makeUnread } from "../../line/seen.ts";
import type { DiskShares, SharedMediaStore } from "../../media/fair_shares.ts";
import type { MediaLinks } from "../../media/signed_link.ts";
import { makeServeFile, makeServeMedia } from "../../media/serve.ts";
import { makeUploads } from "../../media/uploads.ts";
import { type Accept, makeAccept } from "../../message/accept.ts";
import { lineIdsOf } from "../../line/account_lines.ts";
import { proposalsOf } from "../../message/proposals.ts";
import { makeQuotaView } from "../../message/history/counts.ts";
import { History } from "../../message/history/history.ts";
import type { OptOuts } from "../../message/opt_outs.ts";
import { makeQueued } from "../../message/queue_changes.ts";
import { makeTallyOf } from "../../message/receipts.ts";
import type { Recorder } from "../../message/record.ts";
import { makeTemplates } from "../../message/templates/templates.ts";
import { filled } from "../../message/templates/filled.ts";
import type { Message } from "../../message/message.ts";
import { findReplay } from "../../message/send_command.ts";
import type { Metrics } from "../../ops/metrics.ts";
import type { Runtime } from "../../runtime.ts";
import type { Claims } from "../../cluster/holder.ts";
import type { Bell } from "../../store/bell.ts";
import type { Kv } from "../../store/kv.ts";
import type { Seal } from "../../store/seal.ts";
import { makeVerifications } from "../../verification/verifications.ts";
import { makeDeliveryLog } from "../../webhook/delivery_log.ts";
import type { WebhookOwner } from "../../webhook/dispatcher.ts";
import { urlTarget } from "../../webhook/url_target.ts";
import { makeWebhooks } from "../../webhook/webhooks.ts";
import type { Network } from "../../whatsapp/network.ts";
import { makeAdmission, makeClientAddress } from "../edge/auth.ts";
import type { Budgets } from "../edge/budgets.ts";

export interface ServicesDeps {
  kv: Kv;
  runtime: Runtime;
  metrics: Metrics;
  bell: Bell;
  seal: Seal;
  accounts: Accounts;
  callers: Callers;
  events: EventLog;
  recorder: Recorder;
  optOuts: OptOuts;
  live: LiveLines;
  /** What claims new lines and webhooks on a shared store; null on data that only this process uses. */
  claims: Claims | null;
  network: Pick<Network, "recall" | "numberOf" | "lidOf">;
  names: SessionNames;
  lookups: Lookups;
  webhookOwner: WebhookOwner;
  safeFetch: SafeFetch;
  media: SharedMediaStore;
  links: MediaLinks;
  diskShares: Pick<DiskShares, "assertRoom">;
  budgets: Budgets;
  /** By default, each webhook has a secret of its own. */
  makeWebhookSecret?: () => string;
  /** Wraps `accept`, to check each send before it is accepted. */
  accepted(accept: Accept): Accept;
  /** CIDRs of proxies whose X-Forwarded-For is trusted. */
  trustedProxies: readonly string[];
  /** The address by which clients reach the gateway, a proxy's path included; null if it was not given. */
  publicUrl: string | null;
  /** Resolves if the storage accepts a write; rejects or hangs if it does not. */
  probe(): Promise<void>;
  /** Aborts when the gateway stops: event streams end, and `/readyz` answers 503. */
  stopping: AbortSignal;
}

export type Services = ReturnType<typeof makeServices>;

/** Makes the services; each is given what is there already, and resources state what they take of both. */
export function makeServices(deps: ServicesDeps) {
  const { kv, runtime, runtime: { clock }, callers, claims, network, media, links, names, webhookOwner: owner } = deps;
  const idempotency = new Idempotency({ ...deps, isShared: claims !== null });
  const chats = makeChatIndex({ kv, network });
  const keys = makeAccountKeys(deps);
  const serveFile = makeServeFile({ media, runtime });
  const clientAddress = makeClientAddress(deps.trustedProxies);
  const lines = makeLines(deps);
  const target = urlTarget(deps);
  const makeSecret = deps.makeWebhookSecret;
  return {
    ...deps,
    keys,
    admission: makeAdmission({ callers, keys, clock, clientAddress }),
    idempotency,
    lines,
    accept: deps.accepted(makeAccept({ ...deps, idempotency, sessionName: names.of })),
    replay: (request: RepeatableRequest) => findReplay({ kv, idempotency }, request),
    erasures: makeErasures(deps),
    references: new References(deps),
    history: new History(kv),
    filled: (messages: readonly Message[]) => filled(kv, messages),
    proposals: async (accountId: string, page: { page: number; limit: number }) =>
      await proposalsOf(kv, await lineIdsOf(kv, accountId), page),
    templates: makeTemplates(deps),
    verifications: makeVerifications(deps),
    queued: makeQueued({
      ...deps,
      clock,
      laneOf: (lineId, chat) => laneOf(kv, lineId, { chat, now: clock.now() }),
    }),
    amendments: makeAmendments(deps),
    tallyOf: makeTallyOf(kv),
    forecast: makeForecast({ kv, clock, callers }),
    unread: makeUnread({ kv, clock, chats }),
    chatHistory: new ChatHistory({ kv, chats }),
    quotaView: makeQuotaView({ kv, clock }),
    uploads: makeUploads(deps),
    serveFile,
    serveMedia: makeServeMedia({ kv, serveFile, links, runtime }),
    webhooks: makeWebhooks({ ...deps, target, owner, sessions: lines, makeSecret }),
    deliveries: makeDeliveryLog({ ...deps, clock }),
  };
}
