/** Which methods a path has: for 405 with `Allow`, for OPTIONS and for CORS preflights. */
import type { z } from "@hono/zod-openapi";

interface Entry {
  method: string;
  pattern: RegExp;
  params: z.ZodType | undefined;
}

export class PathIndex {
  readonly #entries: Entry[] = [];

  /** `path` has its parameters as `{id}`; values that the schema refuses are not at this path. */
  add(method: string, path: string, params?: z.ZodType): void {
    const source = path.replaceAll(".", "\\.").replaceAll(/\{(\w+)\}/g, "(?<$1>[^/]+)");
    this.#entries.push({ method, pattern: new RegExp(`^${source}$`), params });
  }

  /** In alphabetical order, OPTIONS not named; empty when there is nothing at the path. */
  methodsOf(path: string): string[] {
    const methods = this.#entries.filter(({ pattern, params }) => {
      const match = pattern.exec(path);
      return match && (!params || params.safeParse(match.groups).success);
    }).map(({ method }) => method);
    if (methods.includes("GET")) methods.push("HEAD");
    return [...new Set(methods)].sort();
  }
}
