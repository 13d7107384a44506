/** Failures of the machine in small; `scripts/checks/failures.ts` has them last. */
import assert from "node:assert/strict";
import { GIVE_UP_AFTER_MS } from "../../src/cli/client.ts";
import { type FailureResult, fullDisk, heldLock, terminated } from "../../scripts/chaos/failures.ts";
import { onSmallDisk } from "../support/small_disk.ts";

/** No time that anything should take: the check asks for 5 s to be back, and 10 s to end. */
const shared = { backWithinMs: GIVE_UP_AFTER_MS, report: () => {} };

function assertHeld({ broken, accepted, received }: FailureResult): void {
  assert.deepEqual(broken, []);
  assert.ok(accepted > 0 && received > 0);
}

Deno.test("what was accepted before the disk was full is sent once there is room, and nothing twice", async () => {
  const result = await onSmallDisk(32, (folder) => fullDisk({ ...shared, lines: 1, folder, seconds: 3 }));
  if (result === null) return console.log("no tmpfs could be mounted here");
  assertHeld(result);
  assert.ok(result.refused["503"]! > 0, "no send met the full disk");
});

Deno.test("a gateway whose database another process holds locked loses nothing and goes on", async () => {
  // Longer than SQLite waits by itself.
  assertHeld(await heldLock({ ...shared, lines: 1, seconds: 6 }));
});

Deno.test("SIGTERM under load ends the gateway with 0, and nothing that got a 202 is missing", async () => {
  const { broken, backAfterMs } = await terminated({ ...shared, lines: 2, times: 3, drainsWithinMs: GIVE_UP_AFTER_MS });
  assert.deepEqual(broken, []);
  assert.equal(backAfterMs.length, 3);
});
