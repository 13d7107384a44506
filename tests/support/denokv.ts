/** A `denokv` server for tests (`cargo install denokv --version 0.14.0 --locked`), gone with its handle. */
import { join } from "node:path";
import { answers, freePort } from "./free_port.ts";
import { toolOf } from "./tools.ts";
import { until } from "./until.ts";

/** Every server of the tests takes it; the runtime reads it from the environment. */
export const TOKEN = "a-token-of-the-tests";

export interface DenoKvServer {
  /** `http://127.0.0.1:PORT` of an empty store that nobody else has. */
  readonly url: string;
  restart(): Promise<void>;
  /** SIGKILL; nobody answers any more. */
  halt(): Promise<void>;
  start(): Promise<void>;
  /** Ends it and removes its folder. */
  remove(): Promise<void>;
}

/** The program, or null where there is none. */
export const denoKvProgram = () => toolOf("denokv");

export async function startDenoKv(): Promise<DenoKvServer> {
  Deno.env.set("DENO_KV_ACCESS_TOKEN", TOKEN);
  const folder = await Deno.makeTempDir({ prefix: "paloma-denokv-" });
  const port = freePort();
  const url = `http://127.0.0.1:${port}`;
  let server: Deno.ChildProcess;

  async function start(): Promise<void> {
    const args = ["--sqlite-path", join(folder, "kv.sqlite3"), "serve", "--addr", `127.0.0.1:${port}`];
    server = new Deno.Command(denoKvProgram()!, {
      args: [...args, "--access-token", TOKEN],
      stdout: "null",
      stderr: "null",
    }).spawn();
    await until(() => answers(url), "denokv to answer");
  }

  async function halt(): Promise<void> {
    server.kill("SIGKILL");
    await server.status;
  }

  await start();
  return {
    url,
    halt,
    start,
    async restart() {
      await halt();
      await start();
    },
    async remove() {
      await halt();
      await Deno.remove(folder, { recursive: true });
    },
  };
}
