/** The process that reads one untrusted file (`inspector.ts`): prints what it finds as JSON, and ends. */
import { Buffer } from "node:buffer";
import { fileFacts, pictureFacts } from "./file_facts.ts";

/** Without a path the file is an image, and comes on standard input. Throws when the file can't be read. */
export async function inspectFile(request: string): Promise<void> {
  const file = JSON.parse(request);
  const facts = file.path === undefined
    ? pictureFacts(new Uint8Array(await new Response(Deno.stdin.readable).arrayBuffer()))
    : await fileFacts(file);
  const text = JSON.stringify({
    ...facts,
    jpegThumbnail: base64(facts.jpegThumbnail),
    waveform: base64(facts.waveform),
  });
  await Deno.stdout.write(new TextEncoder().encode(text));
}

function base64(bytes: Uint8Array | undefined): string | undefined {
  return bytes && Buffer.from(bytes).toString("base64");
}
