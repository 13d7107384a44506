/** The whole event feed of an account, as a client reads it. */
import type { Client, Json } from "../../src/cli/client.ts";

export class Feed {
  /** All that was read so far, oldest first. */
  readonly events: Json[] = [];
  readonly #call: Client["call"];
  readonly #query: string;
  #after = "";

  /** `query` narrows it: `types=message.received`. `after`: the cursor from which it is read. */
  constructor(call: Client["call"], { query = "", after = null }: { query?: string; after?: string | null } = {}) {
    this.#call = call;
    this.#query = query && `&${query}`;
    this.#after = after ? `&after=${after}` : "";
  }

  /** Reads to its present end. A page of few types may end before the feed does: `next` leads on. */
  async readOn(): Promise<Json[]> {
    for (;;) {
      const { data, next } = await this.#call("GET", `/events?limit=1000${this.#query}${this.#after}`);
      this.events.push(...data);
      if (next === null) return this.events;
      this.#after = `&after=${next}`;
    }
  }
}
