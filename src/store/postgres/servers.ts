/** Chooses among the servers named in a URL, a primary and its standbys, including after a standby's promotion. */
// @ts-types="@types/pg"
import type { ClientBase } from "pg";
import { urlsOfHosts } from "../../base/database_url.ts";

/** The server answers, but must not be written to, and its data may be stale. */
class NotWritable extends Error {}

export class Servers {
  /** One URL per server. */
  readonly urls: readonly string[];

  /** `url`: `postgres://…`, with one or more hosts. */
  constructor(url: string) {
    this.urls = urlsOfHosts(url).map(plain);
  }

  /**
   * Throws NotWritable for a standby, whose answers are stale and which accepts no commit. Among several servers it
   * also throws for one that is set to read-only, which is how operators retire a primary that has a successor. A
   * single read-only server goes on serving reads.
   */
  async assertWritable(client: ClientBase): Promise<void> {
    const { rows: [server] } = await client.query(
      "select pg_is_in_recovery() as stands_by, current_setting('transaction_read_only') = 'on' as reads_only",
    );
    if (server.stands_by) throw new NotWritable("it is a standby and takes no writes");
    if (server.reads_only && this.urls.length > 1) throw new NotWritable("it is set to read only");
  }

  /**
   * Returns a function that connects to the first writable server, beginning with the last one used. `ways` holds a
   * connector for each server, which throws if the server is not writable. If all fail, the function throws the only
   * server's error, or one that lists the reason for each.
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
          // Next time begin with the standby: it may have been promoted, whereas a dead server costs a timeout.
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

/** The driver treats these modes as `verify-full` anyway, but prints a warning each time. */
function plain(url: string): string {
  if (/[?&]uselibpqcompat=true/.test(url)) return url;
  return url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, "$1verify-full");
}
