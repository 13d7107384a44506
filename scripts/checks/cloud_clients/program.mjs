/** What the programs in JavaScript share: a server for webhooks, and lines of JSON to the check and back. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";

export const { CLOUD_URL, KEY, LINE, TO, VERIFY_TOKEN, FILES, FOLDER } = process.env;

/** Loads a package, which is none of the gateway's own. */
export const load = (name) => import(name);
export const tell = (line) => console.log(JSON.stringify(line));
export const local = (name, type) => new Blob([readFileSync(join(FOLDER, name))], { type });
export const hashOf = async (response) =>
  createHash("sha256").update(Buffer.from(await response.arrayBuffer())).digest("hex");

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** `challenge(query)` and `take(body, headers)` resolve to the text of the answer; resolves to the webhook's secret. */
export async function listen(challenge, take) {
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    try {
      const query = Object.fromEntries(new URL(request.url, "http://localhost").searchParams);
      const answer = request.method === "GET" ? await challenge(query) : await take(body, request.headers);
      response.writeHead(200).end(String(answer ?? ""));
    } catch (error) {
      tell({ failed: String(error), body });
      response.writeHead(500).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  tell({ listening: `http://127.0.0.1:${server.address().port}/` });
  return JSON.parse((await lines.next()).value).secret;
}

/** Serves until the check is done. */
export async function wait() {
  tell({ done: true });
  while (!(await lines.next()).done);
  process.exit(0);
}
