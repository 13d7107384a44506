/** Profiles and blocks on the simulated network, as Baileys as it comes works them. */
import assert from "node:assert/strict";
import { ANA, LINE, onLines } from "../support/two_lines.ts";

const jidOf = (number: string) => `${number}@s.whatsapp.net`;

async function refused(work: Promise<unknown>, code: number): Promise<void> {
  await assert.rejects(work, (error: { data?: number }) => error.data === code);
}

onLines(
  "an owner's picture and words are seen by others, and the blocked are listed",
  async ({ network, line, other }) => {
    await line.socket.updateProfileStatus("open till ten");
    const [status] = (await other.socket.fetchStatus(jidOf(LINE)))!;
    assert.equal((status!.status as { status: string }).status, "open till ten");
    await refused(other.socket.profilePictureUrl(jidOf(LINE), "image"), 404);
    const picture = { tag: "picture", attrs: { type: "image" }, content: new Uint8Array([255, 216, 255]) };
    await line.socket.query({
      tag: "iq",
      attrs: { to: "s.whatsapp.net", type: "set", xmlns: "w:profile:picture" },
      content: [picture],
    });
    const url = await other.socket.profilePictureUrl(jidOf(LINE), "image");
    const client = Deno.createHttpClient({ caCerts: [network.caPem] });
    assert.deepEqual([...new Uint8Array(await (await fetch(url!, { client })).arrayBuffer())], [255, 216, 255]);
    client.close();
    await line.socket.onWhatsApp(ANA);
    const { lid } = network.switchboard.directory.account(ANA)!;
    await line.socket.updateBlockStatus(jidOf(ANA), "block");
    assert.deepEqual(await line.socket.fetchBlocklist(), [lid]);
    await line.socket.updateBlockStatus(jidOf(ANA), "unblock");
    assert.deepEqual(await line.socket.fetchBlocklist(), []);
  },
);
