/** The composition root: opens what a process's role needs, starts its services in order, and stops them. */
import type { Accounts } from "./account/accounts.ts";
import { startServices } from "./base/service.ts";
import type { Emulation } from "./cloud/emulation.ts";
import { type Config, SettingsError } from "./config.ts";
import { lockGateway, pathsOf, placeOf } from "./data/data_folder.ts";
import { fileEngine, loadBaileys, openBaileys, openBell, openData, openMedia } from "./engines.ts";
import type { RoleOptions } from "./roles/context.ts";
import type { RoleName } from "./roles/role.ts";
import type { Runtime } from "./runtime.ts";
import type { Network, NetworkOptions } from "./whatsapp/network.ts";

interface GatewayOptions {
  config: Config;
  runtime: Runtime;
  /** By default the whole gateway; the other roles need a shared store. */
  role?: RoleName;
  /** The engine behind the port to the messaging network; Baileys unless given. */
  openNetwork?: (options: NetworkOptions) => Network;
  /** Makes `/cloud` emulate the official API, instead of speaking for linked lines alone. */
  emulation?: Emulation | undefined;
}

export interface Gateway {
  /** `http://HOST:PORT/v1`. */
  baseUrl: string;
  panelUrl: string;
  /** Resolves to a new one-time link that makes an operator; null if the panel has one. */
  firstRunLink(): Promise<string | null>;
  accounts: Accounts;
  /** Stops accepting requests, lets work in progress finish, closes the lines and the store. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Starts the process in its role; resolves when it listens and its lines begin to connect. A start that fails leaves
 * nothing open. Throws OperatorError, StoreError.
 */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { config, runtime, role = "serve" } = options;
  // Loaded while the store opens, which waits for the disk.
  const loading = import("./roles/role.ts");
  await using starting = new AsyncDisposableStack();
  const parts = await openParts(options, starting);
  const { ROLES } = await loading;
  const { services, url, firstRunLink } = await ROLES[role](parts);
  await startServices(starting, services);
  // Of a process that was killed: only what works with data elsewhere makes any.
  if (config.store !== null || config.media !== null) {
    const { removeLeftCopies } = await import("./data/copies.ts");
    await removeLeftCopies(fileEngine).catch((err) => runtime.log.warn({ err }, "copies could not be removed"));
  }
  runtime.log.info({ role, url: url(), data: placeOf(config) }, "the gateway is up");

  const running = starting.move();
  let stopped: Promise<void> | null = null;

  async function stop(): Promise<void> {
    await running.disposeAsync();
    runtime.log.info("the gateway has stopped");
  }

  return {
    baseUrl: `${url()}/v1`,
    panelUrl: `${url()}/panel`,
    firstRunLink,
    accounts: parts.data.accounts,
    stop: () => stopped ??= stop(),
  };
}

/** Answers a request; `address` is where it comes from. */
type Handler = (request: Request, address: string) => Response | Promise<Response>;

/**
 * Opens the API on a shared store without a port, for hosts that listen themselves. Nothing has to be stopped:
 * everything in memory may be lost at any moment. Throws OperatorError, StoreError.
 */
export async function openApi(options: GatewayOptions): Promise<Handler> {
  const { config } = options;
  if (config.store === null) throw new SettingsError(["PALOMA_STORE: is required where there is no disk"]);
  await using opening = new AsyncDisposableStack();
  const parts = await openParts({ ...options, role: "api" }, opening);
  const { apiOn } = await import("./roles/role.ts");
  const { app } = apiOn(parts, {
    stopping: new AbortController().signal,
    url: () => config.publicUrl ?? "http://localhost",
    connections: () => 0,
  });
  opening.move();
  return (request, address) => app.fetch(request, { incoming: { socket: { remoteAddress: address } } });
}

/** Opens what a role needs before it starts; `opened` closes it. */
async function openParts(options: GatewayOptions, opened: AsyncDisposableStack): Promise<RoleOptions> {
  const { config, runtime, role = "serve", openNetwork = openBaileys, emulation } = options;
  const isShared = config.store !== null;
  // A shared store has leases instead of the lock.
  if (!isShared) opened.adopt(await lockGateway(config.dataDir, fileEngine), (lock) => lock.release());
  const place = isShared && role !== "api"
    ? await (await import("./cluster/place.ts")).takePlace(config.dataDir, { engine: fileEngine, runtime })
    : null;
  if (place) opened.adopt(place, (place) => place.release());
  const data = opened.adopt(await openData(config, runtime), (folder) => folder.close());
  const bell = opened.adopt(await openBell(config, runtime), (bell) => bell.close());
  const media = await openMedia({ ...options, kv: data.kv });
  const hasChanged = isShared
    ? () => true
    : opened.adopt(fileEngine.watch(pathsOf(config.dataDir).store), (watch) => watch.close()).hasChanged;
  const engine = { load: loadBaileys, open: openNetwork };
  return { config, runtime, engine, data, bell, media, hasChanged, place, emulation };
}
