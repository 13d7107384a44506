/** What a family of queries is: an answer to each `<iq>` of its namespaces. */
import type { Companion } from "../world/directory.ts";
import type { BinaryNode } from "../world/stanza.ts";
import type { Switchboard } from "../world/switchboard.ts";

/** Who asks, and of whom. */
export interface QueryContext {
  companion: Companion;
  network: Switchboard;
}

/** Answers one query; null when the namespace knows no such question. */
export type QueryHandler = (query: BinaryNode, context: QueryContext) => BinaryNode | null;
