/** The bridge to Chatwoot at full size: 500 messages each way through kills of all three programs. */
import { openStage, withStage } from "../../tests/support/stage.ts";
import { parsed, scriptCommand, whole } from "../command.ts";
import { bothWays } from "./chatwoot/both_ways.ts";

const command = scriptCommand("chatwoot", "Sends both ways through the bridge to Chatwoot, and kills each side")
  .option("--messages <n>", "how many each way", whole, 500);
const { options: { messages } } = parsed<{ messages: number }>(command);

await withStage(openStage, async (stage) => {
  const begun = performance.now();
  const { kills } = await bothWays(stage, { messages });
  const seconds = Math.round((performance.now() - begun) / 1_000);
  console.log(`${messages} each way in ${seconds} s with ${kills} kills: each once, in order`);
});
