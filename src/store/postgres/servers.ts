/** The servers that a URL names, a primary and its standbys: which of them is used, also after a standby's promotion. */
// @ts-types="@types/pg"
import type { ClientBase } from "pg";
import { urlsOfHosts } from "../../base/database_url.ts";

/** The server answers, but is not the one to write to, or to believe. */
class NotWritable extends Error {}

export class Servers {
  /** One each. */
  readonly urls: readonly string[];

  /** `url`: `postgres://…`, with a host or several. */
  constructor(url: string) {
    this.urls = urlsOfHosts(url).map(plain);
  }

  /**
   * Throws for a standby: what it answers is old, and it takes no commit. Of several servers it throws for one that is set
   * to read only, too: so operators hold a primary back that has a successor. A single one goes on answering reads.
   */
  async assertWritable(client: ClientBase): Promise<void> {
    const { rows: [server] } = await client.query(
      "select pg_is_in_recovery() as stands_by, current_setting('transaction_read_only') = 'on' as reads_only",
    );
    if (server.stands_by) throw new NotWritable("it is a standby and takes no writes");
    if (server.reads_only && this.urls.length > 1) throw new NotWritable("it is set to read only");
  }

  /**
   * Connects to the first server that takes writes, beginning with the one that did last. `ways` has a way to each of
   * them, which throws for one that does not. The function throws what the only server threw; else an error that says
   * what is the matter with each.
   */
  firstWritable<Client>(ways: readonly (() => Promise<Client>)[]): () => Promise<Client> {
    let last = 0;
    return async () => {
      const failures: Error[] = [];
      for (const n of ways.map((_, i) => (last + i) % ways.length)) {
        try {
          const client = await ways[n]!();
          last = n;
          return client;
        } catch (error) {
          // A standby that answers may be promoted next, while one that is gone would be waited for.
          if (error instanceof NotWritable) last = n;
          failures[n] = error instanceof Error ? error : new Error(String(error));
        }
      }
      if (ways.length === 1) throw failures[0];
      const reasons = this.urls.map((url, n) => `${new URL(url).host}: ${failures[n]!.message}`);
      throw new Error(`no server takes writes (${reasons.join("; ")})`);
    };
  }
}

/** The driver takes these modes for `verify-full` unless told otherwise, and says so on the terminal each time. */
function plain(url: string): string {
  if (/[?&]uselibpqcompat=true/.test(url)) return url;
  return url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, "$1verify-full");
}
