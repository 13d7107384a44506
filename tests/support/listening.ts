/** `paloma listen` as a process of its own. */
import type { Json } from "../../src/cli/client.ts";
import { palomaCommand } from "./gateway_process.ts";
import type { Stage } from "./stage.ts";
import { inTime, until } from "./until.ts";

/** A running `paloma listen`. */
export class Listening {
  readonly lines: string[] = [];
  #child: Deno.ChildProcess;
  #stderr = "";
  #read: Promise<unknown>;

  constructor(baseUrl: string, apiKey: string, args: readonly string[]) {
    const env = { PALOMA_API_KEY: apiKey };
    this.#child = palomaCommand(["listen", "--url", baseUrl, ...args], env).spawn();
    const text = () => new TextDecoderStream();
    let rest = "";
    this.#read = Promise.all([
      this.#child.stdout.pipeThrough(text()).pipeTo(
        new WritableStream({
          write: (part) => {
            const parts = (rest + part).split("\n");
            rest = parts.pop()!;
            this.lines.push(...parts);
          },
        }),
      ),
      this.#child.stderr.pipeThrough(text()).pipeTo(
        new WritableStream({ write: (part) => void (this.#stderr += part) }),
      ),
    ]);
  }

  /** Waits until it has said this on stderr. */
  async says(words: RegExp): Promise<string> {
    return await until(() => words.exec(this.#stderr)?.[0], `${words} in: ${this.#stderr}`);
  }

  /** Waits for an event on stdout. */
  async event(what: string, fits: (event: Json) => boolean): Promise<Json> {
    return await until(() => this.lines.map((line) => JSON.parse(line)).find(fits), what);
  }

  /** Ends it as Ctrl-C does; resolves to its exit code. */
  async end(): Promise<number> {
    this.#child.kill("SIGINT");
    const [{ code }] = await inTime(Promise.all([this.#child.status, this.#read]), `listen to end: ${this.#stderr}`);
    return code;
  }
}

export function listen({ gateway, apiKey }: Stage, args: readonly string[]): Listening {
  return new Listening(gateway.baseUrl, apiKey, args);
}
