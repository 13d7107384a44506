/** Two lines of the simulated network, each a Baileys as it comes, and a phone to write to. */
import assert from "node:assert/strict";
import { type SandboxNetwork, startNetwork } from "../../src/sandbox/network.ts";
import { type BareClient, linkedClient } from "./bare_baileys.ts";
import { silentRuntime } from "./runtime.ts";

export const LINE = "4915100000001";
export const OTHER = "4915100000002";
export const ANA = "4915100000003";

export interface Scene {
  network: SandboxNetwork;
  line: BareClient;
  other: BareClient;
  cause(fault: Record<string, unknown>): Promise<void>;
  /** Ends what still holds of the line's faults. */
  lift(): Promise<void>;
}

/** A test on a line and another one, which must not notice. */
export function onLines(name: string, test: (scene: Scene) => Promise<void>): void {
  Deno.test({
    name,
    sanitizeOps: false,
    sanitizeResources: false,
    async fn() {
      const network = await startNetwork({ runtime: silentRuntime(), refresh: false });
      network.addPhone(ANA);
      const line = await linkedClient(network, network.addPhone(LINE));
      const other = await linkedClient(network, network.addPhone(OTHER));
      let otherClosed = false;
      other.socket.ev.on("connection.update", ({ connection }) => otherClosed ||= connection === "close");
      try {
        await test({
          network,
          line,
          other,
          cause: (fault) => cause(network, { line: LINE, ...fault }),
          lift: () => lift(network),
        });
        assert.equal(otherClosed, false, "the other line noticed");
      } finally {
        await line.close();
        await other.close();
        await network.close();
      }
    },
  });
}

async function cause(network: SandboxNetwork, fault: Record<string, unknown>): Promise<void> {
  const response = await fetch(`${network.controlUrl}/faults`, { method: "POST", body: JSON.stringify(fault) });
  assert.equal(response.status, 201, await response.text());
}

async function lift(network: SandboxNetwork): Promise<void> {
  const response = await fetch(`${network.controlUrl}/faults/${LINE}`, { method: "DELETE" });
  assert.equal(response.status, 200, await response.text());
}
