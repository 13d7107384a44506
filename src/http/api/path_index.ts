/** An index of the methods of each path, for 405 with `Allow`, for OPTIONS and for CORS preflights. */
import type { z } from "@hono/zod-openapi";

interface Entry {
  method: string;
  pattern: RegExp;
  params: z.ZodType | undefined;
}

export class PathIndex {
  readonly #entries: Entry[] = [];

  /** Adds a route. `path` writes its parameters as `{id}`; it does not match values that `params` refuses. */
  add(method: string, path: string, params?: z.ZodType): void {
    const source = path.replaceAll(".", "\\.").replaceAll(/\{(\w+)\}/g, "(?<$1>[^/]+)");
    this.#entries.push({ method, pattern: new RegExp(`^${source}$`), params });
  }

  /** Returns the path's methods in alphabetical order, without OPTIONS; empty if the path is unknown. */
  methodsOf(path: string): string[] {
    const methods = this.#entries.filter(({ pattern, params }) => {
      const match = pattern.exec(path);
      return match && (!params || params.safeParse(match.groups).success);
    }).map(({ method }) => method);
    if (methods.includes("GET")) methods.push("HEAD");
    return [...new Set(methods)].sort();
  }
}
