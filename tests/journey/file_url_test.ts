/**
 * `fileUrl` on the whole product: whatever address a client names, directly or by redirect, the gateway connects to
 * none that is not on the public internet, unless the operator allows it. A name server that changes its answer is
 * played in `tests/unit/egress/safe_fetch_test.ts`.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { listenOn } from "../../src/base/listening.ts";
import type { Json } from "../../src/cli/client.ts";
import { accepted, type ApiAnswer, post, refused } from "../support/api_calls.ts";
import { arrivals } from "../support/arrivals.ts";
import { connectionsOf } from "../support/closing.ts";
import { noFileLeft } from "../support/media_folder.ts";
import { sampleFile } from "../support/sample_files.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915559000001";
const CUSTOMER = "4917559000001";
/** Loopback has sixteen million addresses: this one is allowed, the others are not. */
const ALLOWED = "127.0.0.2";

/** `%` stands for the port of a listener on every address of the machine that nobody may reach. */
// deno-fmt-ignore
const FORBIDDEN: readonly string[] = [
  // This machine, in every spelling that a URL parser knows.
  "http://127.0.0.1:%/", "http://127.1:%/", "http://127.0.1:%/", "http://2130706433:%/", "http://0x7f000001:%/",
  "http://0x7f.0.0.1:%/", "http://0x7F.1:%/", "http://0177.0.0.1:%/", "http://017700000001:%/", "http://0177.0x0.0.1:%/",
  "http://127.0.0.1.:%/", "http://127.255.255.254:%/", "http://127.0.0.3:%/", "http://0:%/", "http://0x0:%/",
  "http://0.0.0.0:%/", "https://127.0.0.1:%/", "http://１２７.０.０.１:%/", "http://①②⑦.⓪.⓪.①:%/", "http://127。0。0。1:%/",
  "http://%31%32%37.0.0.1:%/",
  "http://localhost:%/", "http://LOCALHOST:%/", "https://localhost:%/", "http://ｌｏｃａｌｈｏｓｔ:%/",
  "http://[::1]:%/", "http://[::]:%/", "http://[0:0:0:0:0:0:0:1]:%/", "http://[0000::0001]:%/",
  // IPv4 inside of IPv6: mapped, compatible, translated, NAT64, 6to4, Teredo.
  "http://[::ffff:127.0.0.1]:%/", "http://[::ffff:7f00:1]:%/", "http://[::127.0.0.1]:%/", "http://[::ffff:0:127.0.0.1]:%/",
  "http://[64:ff9b::7f00:1]:%/", "http://[64:ff9b:1::7f00:1]:%/", "http://[2002:7f00:1::]:%/", "http://[2001:0:7f00:1::]:%/",
  "http://[::ffff:a9fe:a9fe]/latest/",
  // Clouds' metadata.
  "http://169.254.169.254/latest/meta-data/", "http://2852039166/latest/", "http://0xA9FEA9FE/", "http://0251.0376.0251.0376/",
  "http://169.254.170.2/v2/credentials", "http://[fd00:ec2::254]/latest/", "http://100.100.100.200/latest/",
  "http://168.63.129.16/machine", "http://192.0.0.192/opc/v2/",
  // Networks of their own, and reserved ones.
  "http://10.0.0.1:%/", "http://172.16.0.1/", "http://172.31.255.254/", "http://192.168.1.1/", "http://100.64.0.1/",
  "http://198.18.0.1/", "http://192.0.2.1/", "http://203.0.113.1/", "http://224.0.0.1/", "http://240.0.0.1/",
  "http://255.255.255.255/", "http://[fe80::1]/", "http://[fc00::1]/", "http://[fec0::1]/", "http://[ff02::1]/",
  "http://[2001:db8::1]/", "http://[100::1]/", "http://[5f00::1]/",
  // Not even an allowed address may be called with these.
  `http://user@${ALLOWED}:%/`, `http://user:secret@${ALLOWED}:%/`,
];

/** What is no address of a file at all is refused before anything is accepted. */
// deno-fmt-ignore
const NO_ADDRESS = [
  "file:///etc/passwd", "/etc/passwd", "ftp://127.0.0.1/x", "data:text/plain,hello", "javascript:alert(1)",
  "gopher://127.0.0.1/", "//127.0.0.1/x", "http://", "http://127.0.0.1:99999/", "http://[::1/", "",
];

const REDIRECTS = [301, 302, 303, 307, 308];

Deno.test("no fileUrl reaches what is not public, directly or by redirect; an allowed one arrives", (t) =>
  withStage(() => openStage({ env: { PALOMA_OUTBOUND_ALLOW: ALLOWED } }), async (stage) => {
    await using forbidden = await countConnections();
    await using door = await openDoor();
    await stage.addPhone(CUSTOMER);
    const { sessionId } = await stage.linkLine(LINE);
    const send = (urls: readonly string[]): Promise<ApiAnswer> => {
      const messages = urls.map((fileUrl) => ({ to: CUSTOMER, fileUrl, caption: "a caption of a file" }));
      return post(stage, "/messages/send/bulk", { json: { sessionId, messages } });
    };
    const vectors = FORBIDDEN.map((url) => url.replace(/%(?=\/)/, String(forbidden.port)));

    await t.step(`${vectors.length} addresses, named directly`, async () => {
      const { messages } = await accepted(send(vectors));
      await assertRefused(stage, { messages, vectors });
    });

    await t.step(`the same ${vectors.length}, named by a redirect of an allowed host`, async () => {
      const { messages } = await accepted(send(vectors.map((url) => door.to(url))));
      await assertRefused(stage, { messages, vectors });
    });

    await t.step("at the end of several redirects, and by those without a scheme or a host", async () => {
      const inner = `http://127.0.0.1:${forbidden.port}/`;
      const chain = door.to(door.to(door.to(inner)));
      const forms = [`//127.0.0.1:${forbidden.port}/`, `\\\\127.0.0.1:${forbidden.port}/`, "file:///etc/passwd"];
      const { messages } = await accepted(send([chain, ...forms.map((location) => door.to(location))]));
      await assertRefused(stage, { messages, vectors: [chain, ...forms] });
    });

    await t.step("nothing was connected to, and nothing has arrived", async () => {
      assert.equal(forbidden.connections(), 0);
      assert.deepEqual(await stage.inbox(CUSTOMER), []);
    });

    for (const url of NO_ADDRESS) {
      await t.step(`"${url}" is no address of a file`, async () => {
        const { body } = await refused(send([`http://${ALLOWED}/ok.png`, url]), 400, "validation_failed");
        assert.equal(body.errors[0].path, "messages.1.fileUrl");
      });
    }

    await t.step("an allowed address arrives, by redirect too; one without the file ends with its status", async () => {
      const { messages } = await accepted(send([door.file, door.to(door.file), door.missing]));
      const arrived = await arrivals(stage, CUSTOMER, { count: 2 });
      assert.deepEqual(arrived.map(({ type }) => type), ["imageMessage", "imageMessage"]);
      const [picture] = arrived;
      assert.equal(picture.sha256, createHash("sha256").update(sampleFile("png")).digest("hex"));
      const [failed] = await endedOf(stage, [messages[2].messageId]);
      assert.deepEqual([failed.status, failed.error.code], ["failed", "file_unavailable"]);
      assert.match(failed.error.message, /404/);
      await noFileLeft(stage);
    });
  }));

/** Every message ends as failed, and its reason can be understood. */
async function assertRefused(
  stage: Stage,
  { messages, vectors }: { messages: readonly Json[]; vectors: readonly string[] },
): Promise<void> {
  const ended = await endedOf(stage, messages.map(({ messageId }) => messageId));
  for (const [i, { status, error }] of ended.entries()) {
    assert.deepEqual([status, error.code], ["failed", "file_unavailable"], `${vectors[i]}: ${JSON.stringify(error)}`);
    assert.match(error.message, /^fileUrl: cannot be fetched: the (host is not on the public internet|URL must)/);
  }
}

/** Their history items once all have ended, in the order of the ids. */
function endedOf(stage: Stage, ids: readonly string[]): Promise<Json[]> {
  return until(async () => {
    const { data } = await stage.api.call("GET", `/messages/history?limit=100`);
    const items = ids.map((id) => data.find(({ messageId }: Json) => messageId === id));
    return items.every((item) => item.status === "sent" || item.status === "failed") ? items : null;
  }, "the messages to end");
}

/** Listens on every address of the machine, for any protocol, and counts who connects. */
async function countConnections() {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.destroy();
  });
  const { close } = connectionsOf(server);
  const port = await listenOn(server, { host: "::" }).catch(() => listenOn(server, { host: "0.0.0.0" }));
  return {
    port,
    connections: () => connections,
    [Symbol.asyncDispose]: close,
  };
}

/** A host that is allowed: it has a file, and redirects to wherever it is asked to. */
async function openDoor() {
  let asked = 0;
  const server = createHttpServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://door");
    const location = searchParams.get("to");
    if (location !== null) {
      response.writeHead(REDIRECTS[asked++ % REDIRECTS.length]!, { location: asciiOf(location) });
      response.end();
    } else if (pathname === "/picture.png") response.end(sampleFile("png"));
    else response.writeHead(404).end();
  });
  const { close } = connectionsOf(server);
  const base = `http://${ALLOWED}:${await listenOn(server, { host: ALLOWED })}`;
  return {
    file: `${base}/picture.png`,
    missing: `${base}/missing.png`,
    to: (location: string) => `${base}/?to=${encodeURIComponent(location)}`,
    [Symbol.asyncDispose]: close,
  };
}

/** As a header can carry it. */
function asciiOf(location: string): string {
  return /[^ -~]/.test(location) ? encodeURI(location) : location;
}
