/** The app's router: it looks for a path with parameters in a tree, and knows the others, those of the sends among them. */
import type { Result, Router } from "@hono/hono/router";
import { TrieRouter } from "@hono/hono/router/trie-router";

export class PathRouter<T> implements Router<T> {
  readonly name = "PathRouter";
  readonly #tree = new TrieRouter<T>();
  /** Paths without parameters. */
  readonly #fixed = new Set<string>();
  /** What was found at them, by method and path. */
  readonly #found = new Map<string, Result<T>>();

  add(method: string, path: string, handler: T): void {
    this.#tree.add(method, path, handler);
    this.#found.clear();
    if (!/[:*{]/.test(path)) this.#fixed.add(path);
  }

  match(method: string, path: string): Result<T> {
    if (!this.#fixed.has(path)) return this.#tree.match(method, path);
    const name = `${method} ${path}`;
    const known = this.#found.get(name);
    if (known) return known;
    const found = this.#tree.match(method, path);
    // Clients may take any word for a method: there is no end of those without a handler.
    if (found[0].length > 0) this.#found.set(name, found);
    return found;
  }
}
