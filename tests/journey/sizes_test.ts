/** Whatever the network lets through becomes an event, however long; `scripts/checks/sizes.ts` tries every field and size. */
import { sendLong } from "../support/long_messages.ts";
import { onStage } from "../support/stage.ts";

const LINE = "4915200000041";
const ANA = "4917000000041";

onStage("a message of any size is one event, and the line goes on", async (stage) => {
  await stage.addPhone(ANA, "Ana");
  const line = await stage.linkLine(LINE);
  const kinds = ["emoji", "escapes", "quote", "contacts", "interactive"];
  await sendLong(stage, line, { from: ANA, kinds, sizes: [1_024, 64_000, 260_000, 500_000, 1_048_576] });
});
