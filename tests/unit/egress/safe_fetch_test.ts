import assert from "node:assert/strict";
import { EgressError } from "../../../src/egress/egress_error.ts";
import { makeSafeFetch } from "../../../src/egress/safe_fetch.ts";
import { isPublicAddress, readAllowList } from "../../../src/egress/vetting.ts";
import { answering, Receiver } from "../../support/receiver.ts";
import { ManualClock } from "../../support/runtime.ts";
import { until } from "../../support/until.ts";

const BOTH = ["https:", "http:"] as const;

/** Addresses that no user may reach. */
// deno-fmt-ignore
const FORBIDDEN = [
  "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254",
  "168.63.129.16", "169.254.0.1", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.1",
  "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1", "192.168.255.255", "198.18.0.1", "198.19.255.255",
  "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
  "::", "::1", "::127.0.0.1", "::10.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
  "::ffff:8.8.8.8", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::a83f:8110", "64:ff9b::1:808:808", "64:ff9b:1::a00:1", "100::1",
  "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1",
  "2002:7f00:1::", "2002:a00:1::1", "2002:a9fe:a9fe::", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fd12::1",
  "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1", "ff02::1", "ff0e::1", "4000::1", "not an address", "",
];

/** Ways to spell them in a URL; `%` stands for the port of a listener that nobody may reach. */
// deno-fmt-ignore
const SPELLINGS = [
  "http://127.0.0.1:%/", "http://127.1:%/", "http://127.0.1:%/", "http://2130706433:%/", "http://0x7f000001:%/",
  "http://0x7f.0.0.1:%/", "http://0177.0.0.1:%/", "http://017700000001:%/", "http://127.0.0.1.:%/", "http://0:%/",
  "http://0.0.0.0:%/", "http://[::1]:%/", "http://[::]:%/", "http://[::ffff:127.0.0.1]:%/", "http://[::ffff:7f00:1]:%/",
  "http://[0:0:0:0:0:0:0:1]:%/", "http://[::127.0.0.1]:%/", "http://[64:ff9b::7f00:1]:%/", "http://[2002:7f00:1::]:%/",
  "http://localhost:%/", "http://LOCALHOST:%/", "http://localhost.:%/", "http://１２７.０.０.１:%/", "http://①②⑦.⓪.⓪.①:%/",
  "http://127。0。0。1:%/", "http://%31%32%37.0.0.1:%/", "http://169.254.169.254/latest/meta-data/",
  "http://2852039166/latest/", "http://0xA9FEA9FE/", "http://[fd00:ec2::254]/", "http://10.0.0.1:%/", "http://192.168.1.1/",
];

/** Addresses that are no address of a file or a webhook at all. */
// deno-fmt-ignore
const WRONG_URLS = [
  "", "x", "//example.com/", "/etc/passwd", "file:///etc/passwd", "ftp://example.com/", "gopher://example.com/",
  "data:text/plain,x", "javascript:alert(1)", "ws://example.com/", "blob:http://example.com/1", "http://", "http://:80/",
  "http://user@example.com/", "http://user:pass@example.com/", "http://:pass@example.com/", "http://exa mple.com/",
  "http://example.com:99999/", "http://example.com:0/", "https://example.com:0/", "http://[::1/",
  "http://1.2.3.4.5.6.7.8.9:x/", `http://example.com/${"a".repeat(2_100)}`,
];

const BAD_PORTS = [22, 25, 53, 110, 143, 465, 587, 993, 2049, 5060, 6000, 6667];

function safeFetch(options: Partial<Parameters<typeof makeSafeFetch>[0]> = {}) {
  const resolve = (host: string) =>
    Promise.resolve(host.replace(/\.$/, "") === "localhost" ? ["127.0.0.1"] : ["8.8.8.8"]);
  return makeSafeFetch({ clock: new ManualClock(), allow: readAllowList([]), resolve, ...options });
}

const get = (url: string) => ({
  url,
  method: "GET" as const,
  schemes: BOTH,
  maxRedirects: 5,
  timeoutMs: 10_000,
  maxBytes: 1_000_000,
});

const fails = (code: EgressError["code"]) => (error: unknown) =>
  error instanceof EgressError && (error.code === code || assert.fail(`${error.code}, not ${code}: ${error.message}`));

async function text(body: ReadableStream<Uint8Array>): Promise<string> {
  return await new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>).text();
}

for (const address of FORBIDDEN) {
  Deno.test(`the address "${address}" is not public, neither as a literal nor as an answer of a name server`, async () => {
    assert.equal(isPublicAddress(address), false);
    const { fetch, vet } = safeFetch({ resolve: () => Promise.resolve([address]) });
    await assert.rejects(fetch(get("http://files.test/")), fails("forbidden_address"));
    await assert.rejects(vet("https://files.test/", ["https:"]), fails("forbidden_address"));
  });
}

/** Addresses that anybody may reach; the last is what a name server gives for an IPv4 address where there is only IPv6. */
// deno-fmt-ignore
const PUBLIC = [
  "8.8.8.8", "1.1.1.1", "172.15.0.1", "172.32.0.1", "100.63.0.1", "2606:4700::1111", "2a00:1450::1", "64:ff9b::808:808",
];

for (const address of PUBLIC) {
  Deno.test(`the address ${address} is public`, () => assert.equal(isPublicAddress(address), true));
}

for (const spelling of SPELLINGS) {
  Deno.test(`${spelling} is refused, directly and by redirect, and the listener is never hit`, async () => {
    const secret = await Receiver.start();
    const url = spelling.replace(/%(?=\/)/, String(secret.port));
    const door = await Receiver.start(answering(302, { location: /[^ -~]/.test(url) ? encodeURI(url) : url }));
    const { fetch, vet } = safeFetch({
      allow: readAllowList(["door.test"]),
      resolve: (host) => Promise.resolve([host === "door.test" || host.startsWith("local") ? "127.0.0.1" : "8.8.8.8"]),
    });
    await assert.rejects(fetch(get(url)), fails("forbidden_address"));
    await assert.rejects(vet(url, BOTH), fails("forbidden_address"));
    await assert.rejects(fetch(get(`http://door.test:${door.port}/`)), fails("forbidden_address"));
    assert.equal(secret.requests.length, 0);
    assert.equal(door.requests.length, 1);
    await secret.close();
    await door.close();
  });
}

for (const url of WRONG_URLS) {
  Deno.test(`"${url.slice(0, 40)}" is no address that may be called`, async () => {
    const { fetch, vet } = safeFetch();
    await assert.rejects(fetch(get(url)), fails("forbidden_url"));
    await assert.rejects(vet(url, BOTH), fails("forbidden_url"));
  });
}

for (const port of BAD_PORTS) {
  Deno.test(`port ${port} belongs to another protocol and is refused`, async () => {
    await assert.rejects(safeFetch().fetch(get(`http://example.com:${port}/`)), fails("forbidden_url"));
  });
}

Deno.test("this machine's own addresses, which its firewall does not guard from inside, are open at the web's ports alone", async () => {
  const own = { ownAddresses: () => ["8.8.8.8", "2606:4700::1111"] };
  const { vet } = safeFetch(own);
  const urls = ["http://own.test:9200/", "https://own.test:8443/", "http://[2606:4700:0::1111]:2375/"];
  for (const url of urls) await assert.rejects(vet(url, BOTH), fails("forbidden_address"), url);
  for (const url of ["http://own.test/", "https://own.test/", "http://1.1.1.1:9200/"]) await vet(url, BOTH);
  const allowed = safeFetch({ ...own, allow: readAllowList(["8.8.8.8", "[2606:4700::1111]:2375"]) });
  for (const url of urls) await allowed.vet(url, BOTH);
});

Deno.test("one forbidden address among public ones refuses the name", async () => {
  const { fetch } = safeFetch({ resolve: () => Promise.resolve(["8.8.8.8", "2606:4700::1111", "10.0.0.1"]) });
  await assert.rejects(fetch(get("http://mixed.test/")), fails("forbidden_address"));
});

Deno.test("a name server that changes its answer after the vetting reaches nothing", async () => {
  const secret = await Receiver.start();
  for (const first of ["8.8.8.8", "2606:4700::1111"]) {
    const answers = [[first], ["127.0.0.1"]];
    const { fetch, vet } = safeFetch({ resolve: () => Promise.resolve(answers.shift() ?? ["127.0.0.1"]) });
    const url = `http://rebind.test:${secret.port}/`;
    await vet(url, BOTH);
    await assert.rejects(fetch(get(url)), fails("forbidden_address"));
  }
  assert.equal(secret.requests.length, 0);
  await secret.close();
});

Deno.test("a request resolves a name once, and connects to that very answer", async () => {
  const receiver = await Receiver.start();
  let asked = 0;
  const { fetch } = safeFetch({
    allow: readAllowList(["127.0.0.1"]),
    resolve: () => Promise.resolve([++asked === 1 ? "127.0.0.1" : "127.0.0.2"]),
  });
  const response = await fetch(get(`http://pinned.test:${receiver.port}/a?b=c`));
  assert.equal(await text(response.body), "ok");
  assert.equal(asked, 1);
  assert.equal(receiver.requests[0]?.headers.host, `pinned.test:${receiver.port}`);
  assert.equal(receiver.requests[0]?.path, "/a?b=c");
  await receiver.close();
});

Deno.test("each hop is resolved and vetted anew: a second answer of the same name is refused", async () => {
  const receiver = await Receiver.start(answering(302, { location: "/again" }));
  const answers = [["127.0.0.1"], ["127.0.0.2"]];
  const { fetch } = safeFetch({
    allow: readAllowList(["127.0.0.1/32"]),
    resolve: () => Promise.resolve(answers.shift() ?? []),
  });
  await assert.rejects(fetch(get(`http://hop.test:${receiver.port}/`)), fails("forbidden_address"));
  assert.equal(receiver.requests.length, 1);
  await receiver.close();
});

Deno.test("what the operator allows may be called: names, names below, addresses, networks, over plain http too", async () => {
  const receiver = await Receiver.start();
  const resolve = (host: string) => Promise.resolve(host.endsWith("6.test") ? ["::1"] : ["127.0.0.1"]);
  for (
    const [entry, host] of [["erp.test", "erp.test"], ["*.test", "a.erp.test"], ["127.0.0.1", "x.test"], [
      "127.0.0.0/8",
      "127.0.0.1",
    ]]
  ) {
    const { fetch, vet } = safeFetch({ allow: readAllowList([entry!]), resolve });
    const url = `http://${host}:${receiver.port}/`;
    await vet(url, ["https:"]);
    assert.equal(await text((await fetch({ ...get(url), schemes: ["https:"] })).body), "ok");
  }
  for (
    const [entry, host] of [["erp.test", "not-erp.test"], ["*.test", "test"], ["127.0.0.2", "x.test"], [
      "10.0.0.0/8",
      "127.0.0.1",
    ]]
  ) {
    const { fetch } = safeFetch({ allow: readAllowList([entry!]), resolve });
    await assert.rejects(fetch(get(`http://${host}:${receiver.port}/`)), fails("forbidden_address"));
  }
  assert.equal(receiver.requests.length, 4);
  await receiver.close();
});

Deno.test("plain http to a public host is refused where only https is taken", async () => {
  const { fetch, vet } = safeFetch();
  await assert.rejects(fetch({ ...get("http://example.com/"), schemes: ["https:"] }), fails("forbidden_url"));
  await assert.rejects(vet("http://example.com/", ["https:"]), fails("forbidden_url"));
  await vet("https://example.com/", ["https:"]);
});

Deno.test("a name that does not resolve now may be registered, and fails when it is called", async () => {
  const { fetch, vet } = safeFetch({ resolve: () => Promise.reject(new Error("ENOTFOUND")) });
  await vet("https://later.test/", ["https:"]);
  await assert.rejects(vet("http://later.test/", ["https:"]), fails("forbidden_url"));
  await assert.rejects(fetch(get("https://later.test/")), fails("unresolved"));
});

Deno.test("a name server that hangs does not hang the caller", async () => {
  const clock = new ManualClock();
  const { fetch, vet } = safeFetch({ clock, resolve: () => new Promise(() => {}) });
  const vetting = vet("https://slow.test/", ["https:"]);
  await clock.advance(3_000);
  await vetting;
  const fetching = assert.rejects(fetch(get("https://slow.test/")), fails("timeout"));
  await clock.advance(10_000);
  await fetching;
});

Deno.test("redirects are followed as far as asked, and given back where none are asked for", async () => {
  const receiver = await Receiver.start((response, { path }) =>
    path === "/3"
      ? answering(200)(response, undefined as never, 0)
      : answering(302, { location: `/${Number(path.slice(1)) + 1}` })(response, undefined as never, 0)
  );
  const { fetch } = safeFetch({ allow: readAllowList(["127.0.0.1"]) });
  const base = get(`http://127.0.0.1:${receiver.port}/0`);
  const end = await fetch({ ...base, maxRedirects: 3 });
  assert.equal(end.url.pathname, "/3");
  await end.body.cancel();
  await assert.rejects(fetch({ ...base, maxRedirects: 2 }), fails("too_many_redirects"));
  const given = await fetch({ ...base, maxRedirects: 0 });
  assert.equal(given.status, 302);
  await given.body.cancel();
  await receiver.close();
});

Deno.test("the cap on size ends an answer, with a length and without", async () => {
  const receiver = await Receiver.start((response, { path }) => {
    if (path === "/sized") response.setHeader("content-length", 5_000);
    response.end("x".repeat(5_000));
  });
  const { fetch } = safeFetch({ allow: readAllowList(["127.0.0.1"]) });
  for (const path of ["sized", "chunked"]) {
    const request = get(`http://127.0.0.1:${receiver.port}/${path}`);
    await assert.rejects(
      async () => await text((await fetch({ ...request, maxBytes: 4_999 })).body),
      fails("too_large"),
    );
    assert.equal((await text((await fetch({ ...request, maxBytes: 5_000 })).body)).length, 5_000);
  }
  await receiver.close();
});

Deno.test("an aborted request says so and closes its connection", async () => {
  let closed = false;
  const receiver = await Receiver.start((response) => void response.on("close", () => closed = true));
  const { fetch } = safeFetch({ allow: readAllowList(["127.0.0.1"]) });
  const abort = new AbortController();
  const fetching = assert.rejects(
    fetch({ ...get(`http://127.0.0.1:${receiver.port}/`), signal: abort.signal }),
    fails("aborted"),
  );
  await until(() => receiver.requests.length === 1, "the request");
  abort.abort();
  await fetching;
  await until(() => closed, "the end of the connection");
  await assert.rejects(fetch({ ...get("http://127.0.0.1:1/"), signal: abort.signal }), fails("aborted"));
  await receiver.close();
});

Deno.test("a dropped connection is an error, never a second request", async () => {
  const receiver = await Receiver.start((response) => void response.destroy());
  const { fetch } = safeFetch({ allow: readAllowList(["127.0.0.1"]) });
  for (let i = 1; i <= 10; i++) {
    const post = {
      ...get(`http://127.0.0.1:${receiver.port}/`),
      method: "POST" as const,
      body: new TextEncoder().encode("x"),
    };
    await assert.rejects(fetch(post), (error) => error instanceof EgressError);
    assert.equal(receiver.requests.length, i);
  }
  await receiver.close();
});

Deno.test({
  name: "a host that no certificate can name is refused, and the connection to it is closed",
  // An open connection at the end is a failure.
  sanitizeResources: true,
  fn: async () => {
    const receiver = await Receiver.start();
    const { fetch } = safeFetch({
      allow: readAllowList(["127.0.0.1"]),
      resolve: () => Promise.resolve(["127.0.0.1"]),
    });
    for (const host of ["a!b.test", "-a.test", "a..b", "x".repeat(70)]) {
      await assert.rejects(fetch(get(`https://${host}:${receiver.port}/`)), fails("tls_failed"), host);
    }
    await receiver.close();
  },
});

Deno.test("an allowed place is open at the web's ports and above 1023, or at the port that it names and no other", () => {
  const open = (entry: string, host: string, port: number) => {
    const allow = readAllowList([entry]);
    return allow.allowsHost(host, port) || allow.allowsAddress(host, port);
  };
  for (const port of [80, 443, 1_024, 5_678]) assert.ok(open("10.0.0.0/8", "10.1.2.3", port), String(port));
  for (const port of [22, 25, 81, 1_023]) {
    assert.ok(!open("10.0.0.0/8", "10.1.2.3", port), String(port));
    assert.ok(!open("n8n.local", "n8n.local", port), String(port));
  }
  const named: [entry: string, host: string][] = [
    ["10.0.0.0/8:8443", "10.1.2.3"],
    ["n8n.local:8443", "n8n.local"],
    ["*.internal:8443", "a.internal"],
    ["[fd00::7]:8443", "fd00::7"],
    ["fd00::/8:8443", "fd00::9"],
  ];
  for (const [entry, host] of named) {
    assert.ok(open(entry, host, 8_443), entry);
    for (const port of [22, 80, 443, 8_080]) assert.ok(!open(entry, host, port), `${entry} at ${port}`);
  }
});

Deno.test("what only the operator can allow is refused with the entry that allows it", async () => {
  const addresses: Record<string, string> = { "host.docker.internal": "172.17.0.1", "erp.test": "10.0.0.7" };
  const resolve = (host: string) => addresses[host] ? Promise.resolve([addresses[host]]) : Promise.reject(new Error());
  const entries: Record<string, string> = {
    "http://n8n:5678/webhook/x": "n8n:5678",
    "http://host.docker.internal:5678/x": "host.docker.internal:5678",
    "https://erp.test/x": "erp.test:443",
    "http://10.0.0.7/x": "10.0.0.7:80",
    "http://[fd00::7]:3000/x": "[fd00::7]:3000",
  };
  for (const [url, entry] of Object.entries(entries)) {
    const refused = await safeFetch({ resolve }).vet(url, ["https:"]).then(() => null, (error: Error) => error);
    assert.equal(/PALOMA_OUTBOUND_ALLOW=(.*)$/.exec(refused?.message ?? "")?.[1], entry, url);
    await safeFetch({ resolve, allow: readAllowList([entry]) }).vet(url, ["https:"]);
  }
});
