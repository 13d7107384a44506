/** What a client saw or sent that no log may hold: remembered as it passes, to be searched for at the end of a test. */
import { Buffer } from "node:buffer";
import type { Client } from "../../src/cli/client.ts";
import { readQr } from "../../src/sandbox/phone/linking.ts";
import { keyMaterial, type Secret } from "./leaks.ts";
import type { Environment } from "./gateway_process.ts";
import { dataConfigOf } from "./test_store.ts";

/** Fields of requests and answers whose values are secrets or people's words. */
const FIELDS = new Set(["text", "caption", "apiKey", "secret", "pairingCode"]);
/** Shorter words stand in a log by chance. */
const SHORTEST_TEXT = 8;

export class Secrets implements Iterable<Secret> {
  /** Each once, by what it is. */
  readonly #known = new Map<string, Secret>();
  readonly #qrs = new Set<string>();

  [Symbol.iterator](): Iterator<Secret> {
    return this.#known.values();
  }

  add(secret: Secret): void {
    this.#known.set(typeof secret === "string" ? `text ${secret}` : Buffer.from(secret).toString("base64"), secret);
  }

  /** Takes what is secret in a body, at every depth. A QR counts with each of its parts. */
  read(body: unknown): void {
    if (typeof body !== "object" || body === null) return;
    // The QR of a verification holds its link.
    const isVerification = "link" in body && "qr" in body;
    for (const [name, value] of Object.entries(body)) {
      if (typeof value !== "string") this.read(value);
      else if (isVerification && ["code", "link"].includes(name)) this.add(value);
      else if (name === "qr" && !isVerification) this.#readQr(value);
      else if (FIELDS.has(name) && value.length >= SHORTEST_TEXT) this.add(value);
    }
  }

  /** Takes every key that the data of a gateway in that environment holds now; of one line alone if it is named. */
  async readData(env: Environment, lineId?: string): Promise<void> {
    for (const secret of await keyMaterial(dataConfigOf(env), lineId)) this.add(secret);
  }

  #readQr(qr: string): void {
    if (this.#qrs.has(qr)) return;
    this.#qrs.add(qr);
    const { ref, noisePublic, identityPublic, advSecret } = readQr(qr);
    for (const part of [ref, noisePublic, identityPublic, advSecret]) this.add(part);
  }

  /** The client, watched. */
  watch(client: Client): Client {
    return {
      call: async (method, path, body) => {
        this.read(body);
        const answer = await client.call(method, path, body);
        this.read(answer);
        return answer;
      },
    };
  }
}
