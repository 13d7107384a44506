/** The TypeScript client at full size: 1,000 sends through 5 % of lost connections and a kill of the gateway. Needs npm. */
import { openStage, withStage } from "../../tests/support/stage.ts";
import { projectWithClient } from "../../tests/support/npm_package.ts";
import { eachOnce } from "../clients/each_once.ts";
import { parsed, scriptCommand, whole } from "../command.ts";

const command = scriptCommand(
  "typescript_client",
  "Sends through lost connections and a kill with the TypeScript client",
)
  .option("--sends <n>", "how many", whole, 1_000);
const { options: { sends } } = parsed<{ sends: number }>(command);

await using project = await projectWithClient();
await withStage(openStage, async (stage) => {
  const begun = performance.now();
  const lost = await eachOnce(stage, { sends, spawn: (env) => project.spawn("sender.js", env) });
  const seconds = Math.round((performance.now() - begun) / 1_000);
  console.log(
    `typescript: ${sends} sends in ${seconds} s, each once; ${lost.requests} requests, ${lost.answers} answers lost`,
  );
});
