/** This program again, as another process: the executable where there is one, else the source with Deno. */
import { fileURLToPath } from "node:url";

/** What the executable may start: on Linux only itself, by this name (`scripts/compile.ts`). */
const ITSELF = Deno.build.standalone && Deno.build.os === "linux" ? "/proc/self/exe" : Deno.execPath();

interface Options extends Omit<Deno.CommandOptions, "args"> {
  /** What it may do when it runs from source; the executable has the permissions that it was compiled with. */
  permissions: readonly string[];
}

export function itself(args: readonly string[], { permissions, ...options }: Options): Deno.Command {
  return new Deno.Command(ITSELF, {
    ...options,
    args: [...(Deno.build.standalone ? [] : fromSource(permissions)), ...args],
  });
}

function fromSource(permissions: readonly string[]): string[] {
  const [main, lock] = ["main.ts", "product.lock"].map((name) =>
    fileURLToPath(new URL(`../../${name}`, import.meta.url))
  );
  // Packages that only deno.lock has may not be here.
  const options = ["--quiet", "--no-prompt", "--no-check", "--cached-only", "--frozen", `--lock=${lock}`];
  return ["run", ...options, ...permissions, main!];
}
