/** Searches logs for what must never be in one (promise 6): API keys, message texts, and every key that links a line. */
import { Buffer } from "node:buffer";
import pino from "pino";
import { openDataFolder } from "../../src/data_folder.ts";
import { systemRuntime } from "../../src/runtime.ts";
import { keys } from "../../src/store/keys.ts";

/** Shorter values would be found by chance. */
const SHORTEST_KEY_BYTES = 16;

/** What of the secrets, and of the key material in the data folder, stands in the log: a few characters of each. */
export async function findLeaks(
  log: string,
  { dataDir, secrets }: { dataDir: string; secrets: readonly string[] },
): Promise<string[]> {
  const found = secrets.filter((secret) => log.includes(secret) || log.includes(JSON.stringify(secret).slice(1, -1)));
  for (const secret of await keyMaterial(dataDir)) {
    const forms = [secret.toString("base64"), secret.toString("hex"), secret.toString("base64url"), secret.join(",")];
    if (forms.some((form) => log.includes(form))) found.push(secret.toString("hex"));
  }
  return found.map((secret) => `${secret.slice(0, 6)}…`);
}

/** Every private key, session and credential that the data folder holds, opened. */
export async function keyMaterial(dataDir: string): Promise<Buffer[]> {
  const runtime = systemRuntime(pino({ level: "silent" }));
  const data = await openDataFolder({ dataDir, secretKey: null }, runtime);
  const found = new Map<string, Buffer>();
  try {
    for await (const { value: line } of data.kv.list({ prefix: keys.lines() })) {
      for await (const { value, key } of data.kv.list({ prefix: keys.waLine(line.id) })) {
        if (!(value instanceof Uint8Array) || key.includes("sent") || key.includes("device-list")) continue;
        for (const secret of binaries(new TextDecoder().decode(data.seal.open(value)))) {
          found.set(secret.toString("base64"), secret);
        }
      }
    }
  } finally {
    data.close();
  }
  return [...found.values()];
}

/** The binary values inside of encoded credentials, which are JSON with base64. */
function* binaries(text: string): Iterable<Buffer> {
  for (const [, base64] of text.matchAll(/"([A-Za-z0-9+/]{20,}={0,2})"/g)) {
    const bytes = Buffer.from(base64!, "base64");
    if (bytes.length >= SHORTEST_KEY_BYTES) yield bytes;
  }
}
