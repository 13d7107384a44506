/** What is still held once garbage has been collected. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

/** Whether anybody holds it. What was read of a reference in this turn of the event loop stays until its end. */
export async function isHeld(reference: WeakRef<object>): Promise<boolean> {
  await new Promise((resolve) => setTimeout(resolve));
  collect();
  return reference.deref() !== undefined;
}

/** What all that is held takes. */
export function bytesHeld(): number {
  collect();
  return Deno.memoryUsage().heapUsed;
}
