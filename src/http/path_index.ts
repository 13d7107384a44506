/** Which methods a path has: for 405 with `Allow`, for OPTIONS and for CORS preflights. */
export class PathIndex {
  readonly #paths = new Map<string, { pattern: RegExp; methods: Set<string> }>();

  /** `path` with parameters as `{id}`. */
  add(method: string, path: string): void {
    let entry = this.#paths.get(path);
    if (!entry) {
      const source = path.replaceAll(/[.*+?^$()|[\]\\]/g, "\\$&").replaceAll(/\{\w+\}/g, "[^/]+");
      this.#paths.set(path, entry = { pattern: new RegExp(`^${source}$`), methods: new Set() });
    }
    entry.methods.add(method);
    if (method === "GET") entry.methods.add("HEAD");
  }

  /** In alphabetical order, OPTIONS not named; empty when there is nothing at the path. */
  methodsOf(path: string): string[] {
    const methods = [...this.#paths.values()].filter(({ pattern }) => pattern.test(path)).flatMap((
      e,
    ) => [...e.methods]);
    return [...new Set(methods)].sort();
  }
}
