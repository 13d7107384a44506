import assert from "node:assert/strict";
import { clearImmediate, setImmediate } from "node:timers";
import { BadResponse, type ByteConnection, exchange, type PlainResponse } from "../../../src/egress/http1.ts";

/** A peer that has sent these bytes, in pieces of this size, and then ends the connection or breaks it. */
function peer(answer: string, { piece = 7, end = null as Error | null } = {}): ByteConnection & { sent: string } {
  const bytes = Uint8Array.from(answer, (c) => c.charCodeAt(0));
  let at = 0;
  return {
    sent: "",
    read(into) {
      if (at === bytes.length) return end ? Promise.reject(end) : Promise.resolve(null);
      const part = bytes.subarray(at, at + Math.min(piece, into.length));
      into.set(part);
      at += part.length;
      return Promise.resolve(part.length);
    },
    write(part) {
      this.sent += new TextDecoder().decode(part);
      return Promise.resolve(part.length);
    },
    close() {},
  };
}

const GET = { method: "GET", target: "/a?b", headers: { host: "x.test" }, body: null };
const text = async ({ body }: PlainResponse) => await new Response(ReadableStream.from(body)).text();

const GOOD: [string, string, number, string, boolean][] = [
  ["a length", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", 200, "hello", true],
  ["bytes after the length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello world", 200, "hello", false],
  [
    "chunks",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nx: y\r\n\r\n",
    200,
    "hello",
    true,
  ],
  [
    "a header as long as the content policies of large sites",
    `HTTP/1.1 200 OK\r\nx: ${"a".repeat(20_000)}\r\ncontent-length: 5\r\n\r\nhello`,
    200,
    "hello",
    true,
  ],
  [
    "headers that are nothing but spaces",
    `HTTP/1.1 200 OK\r\n${`x: a${" ".repeat(8_000)}b \t\r\n`.repeat(4)}content-length: \t5 \r\n\r\nhello`,
    200,
    "hello",
    true,
  ],
  ["no length", "HTTP/1.1 200 OK\r\n\r\nhello", 200, "hello", false],
  ["HTTP/1.0", "HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello", 200, "hello", false],
  ["an announced end", "HTTP/1.1 200 OK\r\nconnection: Close\r\ncontent-length: 5\r\n\r\nhello", 200, "hello", false],
  ["no content", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", true],
  [
    "interim answers",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    200,
    "",
    true,
  ],
  ["bare line feeds and no reason", "HTTP/1.1 500\ncontent-length: 2\n\nno", 500, "no", true],
];

for (
  const [coding, written, read] of [
    ["UTF-8", "Fatura mar\xc3\xa7o \xc3\xa0", "Fatura março à"],
    ["Latin-1", "Fatura mar\xe7o \xe0", "Fatura março à"],
  ] as const
) {
  Deno.test(`a header in ${coding} is read as its server meant it`, async () => {
    const { headers } = await exchange(peer(`HTTP/1.1 204 No Content\r\nx: ${written} \r\n\r\n`), GET);
    assert.equal(headers.get("x"), read);
  });
}

Deno.test("a header is found whatever its case; one that comes twice has both values, and a missing one is null", async () => {
  const answer = "HTTP/1.1 204 No Content\r\nA-b: \t1 \r\na-B: 2\r\n\r\n";
  const { headers } = await exchange(peer(answer, { piece: 7 }), GET);
  assert.deepEqual([headers.get("a-b"), headers.get("A-B"), headers.get("c")], ["1, 2", "1, 2", null]);
});

for (const [name, answer, status, content, continues] of GOOD) {
  Deno.test(`an answer with ${name} is read, whatever pieces it comes in`, async () => {
    for (const piece of [1, 2, 7, 10_000]) {
      const response = await exchange(peer(answer, { piece }), GET);
      assert.equal(response.status, status);
      assert.equal(response.mayContinue(), false);
      assert.equal(await text(response), content);
      // Bytes that have not been read yet cannot tell: the watch over idle connections finds them.
      if (piece === 10_000) assert.equal(response.mayContinue(), continues);
    }
  });
}

const BAD_HEADS: [string, string][] = [
  ["nothing", ""],
  ["half a head", "HTTP/1.1 200 OK\r\ncontent-le"],
  ["another protocol", "SSH-2.0-OpenSSH_9.6\r\n"],
  ["HTTP/2", "HTTP/2 200\r\n\r\n"],
  ["a status that is none", "HTTP/1.1 999 No\r\n\r\n"],
  ["switching protocols", "HTTP/1.1 101 Switching\r\n\r\n"],
  ["interim answers without end", "HTTP/1.1 100 Continue\r\n\r\n".repeat(100)],
  ["a folded header", "HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n"],
  ["a header without a name", "HTTP/1.1 200 OK\r\n: b\r\n\r\n"],
  ["a space before the colon", "HTTP/1.1 200 OK\r\na : b\r\n\r\n"],
  ["a NUL in a header", "HTTP/1.1 200 OK\r\na: b\0c\r\n\r\n"],
  ["headers without end", "HTTP/1.1 200 OK\r\n" + "a: b\r\n".repeat(10_000)],
  ["a line without end", "HTTP/1.1 200 OK\r\na: " + "b".repeat(100_000)],
  ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!"],
  ["a negative length", "HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nhello"],
  ["an unknown coding", "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"],
];

for (const [name, answer] of BAD_HEADS) {
  Deno.test(`an answer of ${name} is refused`, async () => {
    await assert.rejects(exchange(peer(answer, { piece: 1_000 }), GET), BadResponse);
  });
}

const BAD_BODIES: [string, string][] = [
  ["shorter than its length", "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nhello"],
  ["with a chunk without a size", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n"],
  ["with a chunk longer than its size", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n"],
  ["without the last chunk", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n"],
  [
    "in many chunks of one byte",
    `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(200_000)}0\r\n\r\n`,
  ],
  [
    "with trailers without end",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n" + "a: b\r\n".repeat(20_000),
  ],
];

for (const [name, answer] of BAD_BODIES) {
  Deno.test(`a body ${name} is an error, not a shorter body`, async () => {
    await assert.rejects(async () => await text(await exchange(peer(answer), GET)), BadResponse);
  });
}

Deno.test("the request goes out once, with its length, and an answer before its end counts", async () => {
  const connection = peer("HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n");
  connection.write = () => Promise.reject(new Error("EPIPE"));
  const body = new TextEncoder().encode("{}");
  assert.equal((await exchange(connection, { ...GET, method: "POST", body })).status, 413);
  const whole = peer("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  await exchange(whole, { ...GET, method: "POST", body });
  assert.equal(whole.sent, "POST /a?b HTTP/1.1\r\nhost: x.test\r\ncontent-length: 2\r\n\r\n{}");
});

Deno.test("a header that would break out of its line is never sent", async () => {
  for (const headers of [{ a: "b\r\nc: d" }, { "a\r\nb": "c" }, { a: "ü" }] as Record<string, string>[]) {
    const connection = peer("HTTP/1.1 200 OK\r\n\r\n");
    await assert.rejects(exchange(connection, { ...GET, headers }), TypeError);
    assert.equal(connection.sent, "");
  }
});

Deno.test("a connection that breaks gives its own error", async () => {
  await assert.rejects(exchange(peer("HTTP/1.1 2", { end: new Error("ECONNRESET") }), GET), /ECONNRESET/);
});

Deno.test("a connection on which the request is still being sent takes no other", async () => {
  const taken = Promise.withResolvers<number>();
  const slow = { ...peer("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"), write: () => taken.promise };
  const body = new Uint8Array(10);
  const response = await exchange(slow, { ...GET, method: "POST", body });
  assert.equal(await text(response), "ok");
  assert.equal(response.mayContinue(), false);
  taken.resolve(1_000);
  for (let turn = 0; turn < 10 && !response.mayContinue(); turn++) await Promise.resolve();
  assert.equal(response.mayContinue(), true);
});

Deno.test("a body in small chunks, as of an export line by line, comes in pieces as large as were read", async () => {
  const line = "x".repeat(58) + "\r\n";
  const chunks = `${line.length.toString(16)}\r\n${line}\r\n`.repeat(10_000);
  const answer = `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`;
  const { body } = await exchange(peer(answer, { piece: 16_384 }), GET);
  const pieces = await Array.fromAsync(body, ({ length }) => length);
  assert.equal(pieces.reduce((sum, length) => sum + length, 0), 10_000 * line.length);
  assert.ok(pieces.length < 50, `${pieces.length} pieces`);
});

Deno.test("an answer that has arrived whole leaves turns of the event loop to others", async () => {
  const answer = await exchange(peer(`HTTP/1.1 200 OK\r\n\r\n${"x".repeat(100_000)}`, { piece: 20_000 }), GET);
  let turns = 0;
  const count = () => void (turns++, next = setImmediate(count));
  let next = setImmediate(count);
  for await (const _ of answer.body);
  clearImmediate(next);
  assert.ok(turns > 1, `${turns} turns`);
});
