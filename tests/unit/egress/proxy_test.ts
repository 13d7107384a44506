/** Proxies that take a connection and then say nothing, or whose target does. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { listenOn } from "../../../src/base/listening.ts";
import { makeProxy } from "../../../src/egress/proxy.ts";
import { readProxy, shownProxy } from "../../../src/egress/proxy_address.ts";
import { ManualClock, settle } from "../../support/runtime.ts";

/** Connects to a host through a proxy that answers as given, until the connection is given up, and closed. */
async function givenUp(url: string, answer: string | null): Promise<string | null> {
  const clock = new ManualClock();
  const server = createServer({ allowHalfOpen: false });
  const port = await listenOn(server);
  try {
    const asked = once(server, "connection") as Promise<[Socket]>;
    const proxy = await makeProxy(readProxy(`http://127.0.0.1:${port}`), "127.0.0.1", clock);
    const connecting = assert.rejects(proxy.connect(new URL(url), []), { code: "unreachable" });
    const [socket] = await asked;
    socket.on("error", () => {});
    const closed = once(socket, "close");
    await once(socket, "data");
    if (answer !== null) {
      socket.write(answer);
      await once(socket, "data"); // the beginning of TLS
    }
    await settle();
    await clock.advance(15_000);
    await connecting;
    await closed;
    return proxy.failure();
  } finally {
    server.close();
  }
}

Deno.test("a proxy that says nothing is given up after 15 s, with the reason, and its connection is closed", async () => {
  const failure = await givenUp("http://host.test", null);
  assert.match(failure!, /^The proxy http:\/\/127\.0\.0\.1:\d+ does not carry the connection: it does not answer\.$/);
});

Deno.test("a host that says nothing behind the proxy is given up too, and is not the proxy's failure", async () => {
  assert.equal(await givenUp("https://host.test", "HTTP/1.1 200 OK\r\n\r\n"), null);
});

Deno.test("a proxy is used at the port that was written, and at its protocol's where none was", () => {
  const written = [
    "socks5://h:80",
    "https://h:80",
    "http://h:443",
    "socks5://[::1]:21",
    "socks5://u:p@h",
    "https://h",
    "http://h",
  ];
  assert.deepEqual(written.map((text) => shownProxy(readProxy(text))), [
    "socks5://h:80",
    "https://h:80",
    "http://h:443",
    "socks5://[::1]:21",
    "socks5://h:1080",
    "https://h:443",
    "http://h:80",
  ]);
});

Deno.test("a proxy's login is decoded, or taken as it is where a percent sign encodes nothing", () => {
  const loginOf = (text: string) => [readProxy(text).username, readProxy(text).password];
  assert.deepEqual(loginOf("http://a%40b:50%25@h:8080"), ["a@b", "50%"]);
  assert.deepEqual(loginOf("socks5://a%zz:50%@h:1080"), ["a%zz", "50%"]);
});

Deno.test("a proxy whose port nobody can listen on is refused", () => {
  for (const text of ["socks5://h:0", "http://u:p@h:0", "https://h:00", "socks5://h:65536"]) {
    assert.throws(() => readProxy(text), { code: "forbidden_url" }, text);
  }
});
