/** The interface of query handlers, each of which answers the `<iq>` stanzas of its namespaces. */
import type { Companion } from "../world/directory.ts";
import type { BinaryNode } from "../world/stanza.ts";
import type { Switchboard } from "../world/switchboard.ts";

/** The companion that sent the query, and the network. */
export interface QueryContext {
  companion: Companion;
  network: Switchboard;
}

/** Answers one query; returns null if the namespace has no such query. */
export type QueryHandler = (query: BinaryNode, context: QueryContext) => BinaryNode | null;
