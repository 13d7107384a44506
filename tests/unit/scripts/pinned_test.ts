/** What others made and a release runs stands by its content, not by a name that they can move. */
import assert from "node:assert/strict";

const HERE = new URL("../../..", import.meta.url);
const read = (path: string) => Deno.readTextFile(new URL(path, HERE));

Deno.test("each action of a workflow stands by its commit, with the version beside it", async () => {
  const names = await Array.fromAsync(Deno.readDir(new URL(".github/workflows", HERE)), ({ name }) => name);
  const uses = (await Promise.all(names.map((name) => read(`.github/workflows/${name}`))))
    .flatMap((text) => text.split("\n").filter((line) => line.includes("uses:")));
  assert.ok(uses.length > 5);
  for (const line of uses) assert.match(line, /uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
});

Deno.test("each image that the Dockerfile takes from elsewhere stands by its digest, with the tag before it", async () => {
  const lines = (await read("Dockerfile")).split("\n");
  const bases = lines.filter((line) => /^FROM |^COPY --from=(?!build )|^# syntax=/.test(line));
  assert.equal(bases.length, 2);
  for (const line of bases) assert.match(line, /^FROM .*[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}( AS \w+)?$/);
});
