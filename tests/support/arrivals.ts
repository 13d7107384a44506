/** Waiting for a number of messages at a simulated phone. */
import type { Json } from "../../src/cli/client.ts";
import type { RunningGateway } from "./gateway_process.ts";
import type { Stage } from "./stage.ts";
import { until } from "./until.ts";

/**
 * The phone's inbox once it holds this many messages, oldest first. A line keeps its order: what one line sent is in the
 * order of sending.
 */
export function arrivals(
  stage: Pick<Stage<RunningGateway>, "inbox">,
  number: string,
  { count }: { count: number },
): Promise<Json[]> {
  return until(async () => {
    const inbox = await stage.inbox(number);
    return inbox.length >= count ? inbox : null;
  }, `${count} messages at ${number}`);
}
