/** A family of queries: it answers each `<iq>` of its namespaces. */
import type { Companion } from "../world/directory.ts";
import type { BinaryNode } from "../world/stanza.ts";
import type { Switchboard } from "../world/switchboard.ts";

/** Who asks, and of whom. */
export interface QueryContext {
  companion: Companion;
  network: Switchboard;
}

/** Answers one query; null when the namespace has no such query. */
export type QueryHandler = (query: BinaryNode, context: QueryContext) => BinaryNode | null;
