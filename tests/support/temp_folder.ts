export interface TempFolder extends AsyncDisposable {
  readonly path: string;
}

/** A new folder that goes, with what is in it, when the scope ends that uses it. */
export async function tempFolder(): Promise<TempFolder> {
  const path = await Deno.makeTempDir({ prefix: "paloma-test-" });
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}
