/** What the bridge remembers, in a Deno KV file of its own. */

/** A line and its inbox. */
export interface Link {
  sessionId: string;
  inbox: number;
  /** In the webhook's address. */
  token: string;
  /** Signs Chatwoot's webhooks; null if this Chatwoot signs none. */
  secret: string | null;
}

/** Where a chat's messages go. */
export interface Place {
  contact: number;
  conversation: number;
}

/** A conversation's chat, and the newest of its messages that was handled. */
export interface Thread {
  sessionId: string;
  /** As the API's `to` takes it. */
  chat: string;
  seen: number;
  /** Messages up to this one may have been sent already, though nothing here says so. */
  doubtful: number;
}

/** A message in Chatwoot. */
export interface Position {
  conversation: number;
  message: number;
}

/** Replies, deletions and receipts reach back this far. */
const KEPT_MS = 90 * 86_400_000;

export class Store {
  readonly #kv: Deno.Kv;

  private constructor(kv: Deno.Kv) {
    this.#kv = kv;
  }

  /** Makes the file if there is none, readable for its owner only. */
  static async open(path: string): Promise<Store> {
    // Files that SQLite makes beside it get its mode.
    (await Deno.open(path, { create: true, write: true, mode: 0o600 })).close();
    return new Store(await Deno.openKv(path));
  }

  close(): void {
    this.#kv.close();
  }

  async links(): Promise<Link[]> {
    return (await Array.fromAsync(this.#kv.list<Link>({ prefix: ["link"] }))).map(({ value }) => value);
  }

  async addLink(link: Link): Promise<void> {
    await this.#kv.set(["link", link.sessionId], link);
  }

  /** The last event of the feed that was handled. */
  readonly cursor = this.#one<string>("cursor");
  /** Up to when an inbox was searched for messages of agents, Unix seconds, by inbox. */
  readonly searched = this.#rows<[inbox: number], number>("searched");
  /** By line and the chat's JID. */
  readonly chatNames = this.#rows<[sessionId: string, jid: string], string>("chat-name");
  readonly places = this.#rows<[sessionId: string, chat: string], Place>("place");
  readonly threads = this.#rows<[conversation: number], Thread>("thread");
  /** By line and the network's id. */
  readonly positions = this.#rows<[sessionId: string, networkId: string], Position>("position", KEPT_MS);
  /** The network's id, by Chatwoot's. */
  readonly networkIds = this.#rows<[message: number], string>("network-id", KEPT_MS);
  /** The gateway's ids of a message of an agent. */
  readonly sent = this.#rows<[message: number], string[]>("sent", KEPT_MS);
  /** The status that Chatwoot was told last. */
  readonly statuses = this.#rows<[message: number], string>("status", KEPT_MS);

  #rows<Key extends (string | number)[], Value>(name: string, expireIn?: number) {
    return {
      get: async (...key: Key): Promise<Value | null> => (await this.#kv.get<Value>([name, ...key])).value,
      set: async (value: Value, ...key: Key): Promise<void> => {
        await this.#kv.set([name, ...key], value, expireIn === undefined ? {} : { expireIn });
      },
      delete: async (...key: Key): Promise<void> => await this.#kv.delete([name, ...key]),
    };
  }

  #one<Value>(name: string) {
    const rows = this.#rows<[], Value>(name);
    return { get: () => rows.get(), set: (value: Value) => rows.set(value) };
  }
}
