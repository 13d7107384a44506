/**
 * The store under the gateways of the tests: the data folder, or with `PALOMA_TEST_STORE=postgres://…` a database of its
 * own for each folder on that server, and a bucket with `PALOMA_TEST_MEDIA=s3://…`. `tests/support/with_servers.ts` runs
 * a command so.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { DataConfig } from "../../src/data/data_folder.ts";
import type { Environment } from "./gateway_process.ts";
import { postgresPrograms } from "./postgres.ts";

/** What the machines of a shared store have in common. */
const SECRET_KEY = "the secret key of the tests";

/** The environment with the store that the tests are to use, where it names a folder and no store. */
export function onTestStore(env: Environment): Environment {
  const server = Deno.env.get("PALOMA_TEST_STORE");
  if (!server || env.PALOMA_DATA_DIR === undefined || env.PALOMA_STORE !== undefined) return env;
  const url = new URL(server);
  const name = `test_${createHash("sha256").update(env.PALOMA_DATA_DIR).digest("hex").slice(0, 16)}`;
  // The second time it is there already.
  new Deno.Command(join(postgresPrograms()!, "createdb"), {
    args: ["-h", url.hostname, "-p", url.port, "-U", url.username, name],
    stdout: "null",
    stderr: "null",
  }).outputSync();
  url.pathname = `/${name}`;
  return { PALOMA_SECRET_KEY: SECRET_KEY, ...bucketEnv(), ...env, PALOMA_STORE: url.href };
}

function bucketEnv(): Environment {
  const media = Deno.env.get("PALOMA_TEST_MEDIA");
  if (!media) return {};
  const keys = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map((name) => [name, Deno.env.get(name)!]);
  return { PALOMA_MEDIA: media, ...Object.fromEntries(keys) };
}

/** How a test opens the data of a gateway in that environment, or in that folder. */
export function dataConfigOf(place: Environment | string): DataConfig {
  const env = onTestStore(typeof place === "string" ? { PALOMA_DATA_DIR: place } : place);
  return {
    dataDir: env.PALOMA_DATA_DIR!,
    store: env.PALOMA_STORE ?? null,
    // Without a store of its own the folder has made its key.
    secretKey: env.PALOMA_STORE === undefined ? null : env.PALOMA_SECRET_KEY!,
  };
}
