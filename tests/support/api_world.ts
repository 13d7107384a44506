/**
 * The API in this process on everything that is real but the network and the disk of the store: requests go straight into
 * the app, time moves when told. `ApiStage` is what the tables in `tests/http/` need; a real gateway can offer it too.
 */
import { chatsOn } from "./chats.ts";
import type { Hono } from "@hono/hono";
import type { Account } from "../../src/account/account.ts";
import { type Accounts, makeAccounts } from "../../src/account/accounts.ts";
import { Callers } from "../../src/account/callers.ts";
import { DEFAULT_PLANS, type Plan } from "../../src/account/plan.ts";
import { Plans } from "../../src/account/plans.ts";
import { formatsOn } from "../../src/cloud/formats.ts";
import { EgressError } from "../../src/egress/egress_error.ts";
import { makeSafeFetch, type SafeFetch } from "../../src/egress/safe_fetch.ts";
import { readAllowList } from "../../src/egress/vetting.ts";
import type { NewEvent } from "../../src/event/event.ts";
import { makeEventLog } from "../../src/event/event_log.ts";
import type { ApiEnv } from "../../src/http/api/route.ts";
import { makeBudgets } from "../../src/http/edge/budgets.ts";
import { createApi } from "../../src/http/server.ts";
import { makeServices, type Services } from "../../src/http/api/services.ts";
import { lineIdsOf } from "../../src/line/account_lines.ts";
import { makeSessionNames } from "../../src/line/line_row.ts";
import { aPlan } from "./send_world.ts";
import { makeLookups } from "../../src/line/lookups.ts";
import { soleHolder } from "../../src/cluster/holder.ts";
import { CHANGED_TOPIC } from "../../src/line/live.ts";
import { LINE } from "../../src/line/rows.ts";
import { WEBHOOK } from "../../src/webhook/rows.ts";
import { urlTarget } from "../../src/webhook/url_target.ts";
import { LineSession } from "../../src/line/line_session.ts";
import { Supervisor } from "../../src/line/supervisor.ts";
import { openBucket } from "../../src/media/s3.ts";
import { makeBucketMediaStore } from "../../src/media/bucket_store.ts";
import { type DiskMediaStore, openDiskMediaStore } from "../../src/media/disk_store.ts";
import { makeMediaLinks, type MediaLinks } from "../../src/media/signed_link.ts";
import { DiskShares, withFairWrites } from "../../src/media/fair_shares.ts";
import { makeMediaIngest } from "../../src/media/ingest.ts";
import { sweepOrphans } from "../../src/media/sweep.ts";
import { makeFetchAttachment } from "../../src/message/fetch_attachment.ts";
import { makeOptOuts } from "../../src/message/opt_outs.ts";
import type { Message } from "../../src/message/message.ts";
import { makeQueuedCount } from "../../src/message/history/counts.ts";
import { Recorder } from "../../src/message/record.ts";
import { makeMetrics } from "../../src/ops/metrics.ts";
import { type SweepWork, sweepWork } from "../../src/ops/sweep_work.ts";
import { makeTimeKeeper } from "../../src/ops/time_keeper.ts";
import { addCloud } from "../../src/cloud/cloud.ts";
import { addMcp } from "../../src/mcp/mcp.ts";
import { makePasswords } from "../../src/panel/logins/password.ts";
import { addPanel } from "../../src/panel/panel.ts";
import { removePanelRows } from "../../src/panel/sweep.ts";
import type { Service } from "../../src/base/service.ts";
import { denoKvFiles } from "../../src/store/deno_kv/file_engine.ts";
import { Change, type Kv } from "../../src/store/kv.ts";
import { messageKeys } from "../../src/message/rows.ts";
import { makeSeal, sealKey } from "../../src/store/seal.ts";
import { Dispatcher } from "../../src/webhook/dispatcher.ts";
// So that the dispatcher need not wait for the disk, which moved time does not do.
import "../../src/webhook/worker.ts";
import { FakeNetwork } from "./fake_network.ts";
import { testBell } from "./bell.ts";
import { MemoryDisk, MemoryKv } from "./memory_kv.ts";
import { settle, type TestRuntime, testRuntime } from "./runtime.ts";

export interface CallOptions {
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is. */
  body?: BodyInit;
  headers?: Record<string, string>;
  /** Null: none. Left out: the account's. */
  key?: string | null;
  /** Where the request comes from. */
  from?: string;
}

/** The request that the options describe; `ownKey`: the account's. */
export function requestOf(method: string, options: CallOptions, ownKey: string): RequestInit {
  const { json, body, headers = {}, key = ownKey } = options;
  return {
    method,
    headers: {
      ...(key === null ? {} : { "x-api-key": key }),
      ...(json === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    body: json === undefined ? body : JSON.stringify(json),
  };
}

/** What the tables need: a way to ask, and a session that is linked. */
export interface ApiStage {
  readonly apiKey: string;
  call(method: string, path: string, options?: CallOptions): Promise<Response>;
  /** Id of a linked, connected session. */
  linkedSession(): Promise<string>;
}

export interface ApiWorldOptions {
  plan?: Partial<Plan>;
  trustedProxies?: string[];
  publicUrl?: string | null;
  /** Replaces services, to let them fail. */
  services?: Partial<Services>;
  /** Begins anew on what this one left, as after a crash. */
  after?: ApiWorld;
  /** Keeps the files, in place of the disk. */
  bucket?: { readonly size: number; fetch(request: Request): Promise<Response> } | undefined;
  /** Answers requests to webhooks and for files. Left out: there is no network, and files are not fetched. */
  web?: Pick<SafeFetch, "fetch"> | undefined;
}

const BUCKET = {
  bucket: "files",
  prefix: "",
  endpoint: "http://bucket.test",
  region: "us-east-1",
  accessKeyId: "key",
  secretAccessKey: "secret",
  sessionToken: null,
};
const SANDBOX = DEFAULT_PLANS.find(({ name }) => name === "sandbox")!;

export class ApiWorld implements ApiStage {
  readonly runtime: TestRuntime;
  readonly network: FakeNetwork;
  readonly kv: MemoryKv;
  readonly stopping = new AbortController();
  accounts!: Accounts;
  callers!: Callers;
  account!: Account;
  apiKey!: string;
  media!: DiskMediaStore;
  links!: MediaLinks;
  app!: Hono<ApiEnv>;
  services!: Services;
  /** The work of the sweeps, which do not run by themselves. */
  sweeps!: SweepWork;
  /** The accounts as a command in another process sees them. */
  otherProcess!: () => Accounts;
  /** The number of files that are kept, finished or not. */
  kept!: () => Promise<number>;
  readonly #starts: number;
  #folder!: string;
  #time!: Service;
  #supervisor!: Supervisor;
  #dispatcher!: Dispatcher;

  private constructor(after?: ApiWorld) {
    this.#starts = after ? after.#starts + 1 : 1;
    this.runtime = testRuntime(this.#starts, after?.runtime.clock);
    this.network = after?.network ?? new FakeNetwork(this.runtime.clock);
    this.kv = new MemoryKv(after?.kv.disk ?? new MemoryDisk());
  }

  /** An account on a plan without limits, unless told otherwise. */
  static async open(options: ApiWorldOptions = {}): Promise<ApiWorld> {
    const world = new ApiWorld(options.after);
    await world.#boot(options);
    return world;
  }

  async #boot(
    { plan, trustedProxies = [], publicUrl = null, services, after, web, bucket }: ApiWorldOptions,
  ): Promise<void> {
    const { runtime, kv } = this;
    this.#folder = after ? after.#folder : await Deno.makeTempDir({ prefix: "paloma-api-" });
    const seal = makeSeal(sealKey("a secret of the test"), runtime.random);
    const plans = new Plans(kv);
    if (!after) await plans.set({ ...SANDBOX, name: "tested", ...plan });
    const callers = this.callers = new Callers({ kv, plans, clock: runtime.clock });
    this.accounts = makeAccounts({ kv, seal, callers, runtime });
    this.otherProcess = () =>
      makeAccounts({ kv, seal, callers: new Callers({ kv, plans, clock: runtime.clock }), runtime });
    const disk = this.media = await openDiskMediaStore(this.#folder, runtime);
    const media = bucket
      ? makeBucketMediaStore({
        bucket: openBucket(BUCKET, { clock: runtime.clock, http: bucket.fetch }),
        kv,
        runtime,
        engine: denoKvFiles,
      })
      : {
        ...disk,
        sweepOrphans: (kv: Kv, signal: AbortSignal) => sweepOrphans({ kv, media: disk, runtime }, { signal }),
      };
    this.kept = async () => bucket ? bucket.size : (await this.files()).length;
    const links = this.links = makeMediaLinks(() => "http://gateway.test", new Uint8Array(32));
    const bell = testBell(runtime);
    const events = makeEventLog({ kv, bell, runtime });
    const names = makeSessionNames(kv, runtime.clock);
    const recorder = new Recorder({
      kv,
      chats: chatsOn(kv, this.network),
      runtime,
      events,
      sessionName: names.of,
      files: media,
    });
    const lookups = makeLookups(runtime);
    const pausesOnly = aPlan();
    const optOuts = makeOptOuts({
      kv,
      clock: runtime.clock,
      events,
      recorder,
      linesOf: (accountId) => lineIdsOf(kv, accountId),
      chats: chatsOn(kv, this.network),
      wordsOf: async (accountId) => (await callers.of(accountId))?.account.optOutWords ?? [],
      bell,
    });
    const shared = withFairWrites(media, runtime.clock);
    const safeFetch: SafeFetch = {
      ...makeSafeFetch({ clock: runtime.clock, allow: readAllowList([]), resolve: publicName }),
      fetch: web
        ? (request) => web.fetch(request)
        : () => Promise.reject(new EgressError("unreachable", "there is no network here")),
      proxy: () => Promise.reject(new Error("no proxies here")),
    };
    const session = {
      sessionName: names.of,
      optOuts,
      kv,
      runtime,
      bell,
      chats: chatsOn(kv, this.network),
      recorder,
      files: media,
      fetchPreview: () => Promise.resolve(null),
      fetchAttachment: web
        ? makeFetchAttachment({ kv, runtime, safeFetch, files: shared, recorder })
        : async ({ id }: Message) => {
          await recorder.drop(id, { code: "file_unavailable", message: "Files are not fetched here." });
        },
      plan: () => Promise.resolve(pausesOnly),
      events,
      media: makeMediaIngest({ media: shared, links, runtime }),
      seal,
      lookups,
      network: this.network,
    };
    const supervisor = this.#supervisor = new Supervisor({
      kv,
      runtime,
      bell,
      changes: { hear: () => () => {} },
      holder: soleHolder(kv, LINE),
      plansChanged: () => Promise.resolve(false),
      sessions: () => Promise.resolve((_, line, changed) => new LineSession(session, line, changed)),
    });
    const dispatcher = this.#dispatcher = new Dispatcher({
      kv,
      events,
      target: urlTarget({ safeFetch, runtime }),
      seal,
      runtime,
      bell,
      formats: formatsOn(kv),
      holder: soleHolder(kv, WEBHOOK),
    });
    this.sweeps = sweepWork({
      kv,
      runtime,
      bell,
      events,
      recorder,
      network: this.network,
      sweepChunks: () => Promise.resolve(0),
      media,
      shares: new DiskShares(),
      mediaBytes: Infinity,
      removeAbove: (accountId) => removePanelRows(kv, accountId),
      eventDays: 30,
      eventBytes: 1e9,
      historyDays: 365,
    });
    const metrics = makeMetrics();
    const made = makeServices({
      kv,
      runtime,
      metrics,
      bell,
      seal,
      accounts: this.accounts,
      callers,
      events,
      recorder,
      optOuts,
      live: supervisor,
      claims: null,
      network: this.network,
      names,
      lookups,
      webhookOwner: dispatcher,
      safeFetch,
      media: shared,
      links,
      diskShares: new DiskShares(),
      budgets: makeBudgets({ bodyBytes: 0, metrics, clock: runtime.clock }),
      accepted: (accept) => accept,
      trustedProxies,
      publicUrl,
      probe: () => Promise.resolve(),
      stopping: this.stopping.signal,
    });
    this.services = { ...made, ...services };
    this.app = createApi(this.services);
    addMcp(this.app, this.services);
    addCloud(this.app, this.services);
    addPanel(this.app, {
      ...this.services,
      kv,
      seal,
      plans,
      queuedCount: makeQueuedCount(kv),
      // `tests/unit/panel/password_test.ts` hashes at the real cost.
      passwords: makePasswords(runtime.random, { cost: 2, passes: 1 }),
      watchLine: (lineId, look) => bell.hear(CHANGED_TOPIC + lineId, look),
      watchAllLines: (look) => bell.hear(CHANGED_TOPIC, look),
      publicUrl: null,
      dataDir: this.#folder,
      run: () => Promise.reject(new Error("no command runs here")),
      backupDir: `${this.#folder}/backups`,
      webVersion: null,
      panelUrl: () => "http://gateway.test/panel",
    });
    const { account, apiKey } = after ?? await this.accounts.create({ name: "acme", plan: "tested" });
    this.account = account;
    this.apiKey = apiKey;
    this.#time = makeTimeKeeper(kv, runtime);
    await this.#time.start();
    await supervisor.start();
    await dispatcher.start();
  }

  async call(method: string, path: string, options: CallOptions = {}): Promise<Response> {
    const incoming = { socket: { remoteAddress: options.from ?? "127.0.0.1" } };
    return await this.app.request(path, requestOf(method, options, this.apiKey), { incoming } as never);
  }

  async linkedSession(): Promise<string> {
    const line = await this.services.lines.create(this.account.id, { name: "Support line", pairingPhone: null });
    await settle();
    this.network.of(line.id).links();
    await settle();
    return line.id;
  }

  /** A message as it stands in the store. */
  async message(messageId: string): Promise<Message | null> {
    return (await this.kv.get<Message>(messageKeys.message(messageId))).value;
  }

  /** Logs events, in one commit each. */
  async log(...events: Omit<NewEvent, "accountId">[]): Promise<void> {
    for (const event of events) {
      const change = new Change();
      this.services.events.append(change, { ...event, accountId: this.account.id } as NewEvent);
      await this.kv.commit(change);
      this.services.events.committed(this.account.id);
    }
  }

  /** Names of the files that lie on disk. */
  async files(): Promise<string[]> {
    const found: string[] = [];
    for await (const files of this.media.folders()) found.push(...files.map(({ path }) => path));
    return found;
  }

  /** The process dies: nothing that it began goes on. The next one is opened `after` this one. */
  die(): void {
    this.kv.commitsLeft = -1;
    this.network.forgetProcess();
    this.runtime.clock.restart();
    this.stopping.abort();
  }

  async close(): Promise<void> {
    this.stopping.abort();
    const stopped = Promise.all([this.#supervisor.stop(), this.#dispatcher.stop(), this.#time.stop()]);
    await this.runtime.clock.advance(10_000);
    await stopped;
    await Deno.remove(this.#folder, { recursive: true });
  }
}

/** Runs the test on a world of its own. */
export async function withApi(run: (world: ApiWorld) => Promise<void>, options: ApiWorldOptions = {}): Promise<void> {
  const world = await ApiWorld.open(options);
  try {
    await run(world);
  } finally {
    await world.close();
  }
}

/** No test asks a name server: every name is on the public internet. */
function publicName(): Promise<string[]> {
  return Promise.resolve(["93.184.215.14"]);
}
