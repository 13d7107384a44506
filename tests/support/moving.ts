/** A line that moves from one world to another. */
import type { importLine } from "../../src/line/transfer.ts";
import { SEAL, World } from "./line_world.ts";
import { MemoryKv } from "./memory_kv.ts";
import { quickKey } from "./runtime.ts";

export const FILE = new TextEncoder().encode("%PDF-1.7 an invoice");

/** What a command has of the world's data; `commitsLeft` of its own store ends it. */
export function commandOn(world: World, files = new Map<string, Uint8Array>()) {
  const kv = new MemoryKv(world.disk);
  const { runtime } = world;
  const deps: Parameters<typeof importLine>[0] = {
    kv,
    runtime,
    callers: world.callers,
    claims: null,
    seal: SEAL,
    keyOf: quickKey,
    link: {
      read: () => Promise.resolve(new TextEncoder().encode("the link")),
      opened: () => (lineId) => Promise.resolve(void world.network.linked.add(lineId)),
      drop: (lineId) => Promise.resolve(void world.network.linked.delete(lineId)),
    },
    media: {
      async write(content) {
        const fileId = runtime.ids.next("med");
        files.set(fileId, new Uint8Array(await new Response(content).arrayBuffer()));
        return { fileId, size: files.get(fileId)!.length, sha256: "of the file" };
      },
      read: (id) => Promise.resolve(new Blob([new Uint8Array(files.get(id)!)]).stream()),
    },
  };
  return { kv, deps };
}

/** An old place with a line on which five messages wait, one with a file and one for later. */
export async function oldPlace() {
  const world = new World();
  await world.addLine("ses_1", { phone: "34600000001" });
  const files = new Map([["med_1", FILE]]);
  const file = { fileId: "med_1", size: FILE.length, sha256: "of the file" };
  const messages = [
    await world.accept(),
    await world.accept("ses_1", {
      content: { kind: "document", file, filename: "invoice.pdf", mimetype: "application/pdf", caption: null },
    }),
    await world.accept("ses_1", { sendAt: world.clock.now() + 60_000 }),
    await world.accept("ses_1", { priority: "high" }),
    await world.accept("ses_1", { bulkId: null }),
  ];
  return { world, messages, files, ...commandOn(world, files) };
}
