/** An S3 server for tests: versitygw on a temporary folder (`go install github.com/versity/versitygw/cmd/versitygw`). */
import { join } from "node:path";
import type { BucketConfig } from "../../src/config.ts";
import { answers, freePort } from "./free_port.ts";
import { toolOf } from "./tools.ts";
import { until } from "./until.ts";

export const s3Program = () => toolOf("versitygw");

export interface S3Server {
  /** Of a bucket that is there. */
  readonly config: BucketConfig;
  /** The settings of a gateway that keeps its files there. */
  readonly env: Readonly<Record<string, string>>;
  /** Names of the objects, as the server's disk has them. */
  objects(): string[];
  /** Uploads in parts that were neither finished nor given up. */
  unfinished(): number;
  halt(): Promise<void>;
  start(): Promise<void>;
  /** Ends it and removes its folder. */
  remove(): Promise<void>;
}

const ACCESS_KEY = "the-access-key";
const SECRET_KEY = "the-secret-of-the-tests";
const BUCKET = "files";
const PREFIX = "paloma/";

export async function startS3(): Promise<S3Server> {
  const root = await Deno.makeTempDir({ prefix: "paloma-s3-" });
  // What it notes of each object lies beside the objects: not every disk keeps attributes of files.
  const [folder, sidecar] = [join(root, "buckets"), join(root, "notes")];
  const bucket = join(folder, BUCKET);
  await Deno.mkdir(bucket, { recursive: true });
  await Deno.mkdir(sidecar);
  const port = freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  let server: Deno.ChildProcess | null = null;

  async function start(): Promise<void> {
    const keys = ["--access", ACCESS_KEY, "--secret", SECRET_KEY];
    server = new Deno.Command(s3Program()!, {
      args: [...keys, "--port", `127.0.0.1:${port}`, "--quiet", "posix", "--sidecar", sidecar, folder],
      stdout: "null",
      stderr: "null",
    }).spawn();
    await until(() => answers(endpoint), "versitygw to answer");
  }

  async function halt(): Promise<void> {
    if (server === null) return;
    server.kill("SIGKILL");
    await server.status;
    server = null;
  }

  await start();
  return {
    config: {
      bucket: BUCKET,
      prefix: PREFIX,
      endpoint,
      region: "us-east-1",
      accessKeyId: ACCESS_KEY,
      secretAccessKey: SECRET_KEY,
      sessionToken: null,
    },
    env: {
      PALOMA_MEDIA: `s3://${BUCKET}/${PREFIX}?endpoint=${endpoint}`,
      AWS_ACCESS_KEY_ID: ACCESS_KEY,
      AWS_SECRET_ACCESS_KEY: SECRET_KEY,
    },
    objects: () => namesIn(join(bucket, PREFIX)),
    unfinished: () => namesIn(join(bucket, ".sgwtmp", "multipart")).length,
    halt,
    start,
    async remove() {
      await halt();
      await Deno.remove(root, { recursive: true });
    },
  };
}

function namesIn(folder: string): string[] {
  try {
    return [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
  } catch {
    return [];
  }
}
