/** The control API is for programs on this machine, and for no page that a browser on it has open. */
import assert from "node:assert/strict";
import { controlApp } from "../../../../src/sandbox/control/app.ts";
import { startNetwork } from "../../../../src/sandbox/network.ts";
import { testRuntime } from "../../../support/runtime.ts";

const PHONE = { method: "POST", body: JSON.stringify({ number: "4917000000001" }) };

Deno.test("a page cannot operate the phones, neither from its own site nor by a name that points here", async () => {
  const network = await startNetwork({ runtime: testRuntime() });
  const app = controlApp(network);
  const asked = async (url: string, init: RequestInit) => (await app.request(url, init)).status;
  try {
    for (const origin of ["https://evil.example", "null", "http://127.0.0.1.evil.example:8081"]) {
      assert.equal(await asked("http://127.0.0.1:8081/phones", { ...PHONE, headers: { origin } }), 403, origin);
    }
    for (const host of ["evil.example", "127.0.0.1.evil.example", "0.0.0.0"]) {
      assert.equal(await asked(`http://${host}:8081/phones`, {}), 403, host);
    }
    assert.equal(network.phone("4917000000001"), null);
    for (const host of ["127.0.0.1", "localhost", "[::1]"]) {
      assert.equal(await asked(`http://${host}:8081/phones`, {}), 200, host);
    }
    assert.equal(await asked("http://127.0.0.1:8081/phones", PHONE), 201);
  } finally {
    await network.close();
  }
});

Deno.test("lifting a line's faults ends those without a time too: missing keys, a restriction, a cap", async () => {
  const runtime = testRuntime();
  const network = await startNetwork({ runtime });
  const app = controlApp(network);
  const ask = async (method: string, path: string, asked?: unknown) => {
    const response = await app.request(`http://127.0.0.1:8081${path}`, { method, body: JSON.stringify(asked) });
    assert.ok(response.ok, await response.text());
  };
  const line = "4917000000001";
  const until = runtime.clock.now() + 3_600_000;
  try {
    await ask("POST", "/phones", { number: line });
    await ask("POST", "/faults", { line, kind: "no_keys", device: 0 });
    await ask("POST", "/faults", { line, kind: "restrict", until });
    await ask("POST", "/faults", { line, kind: "cap_new_chats", limit: 0, until });
    await ask("DELETE", `/faults/${line}`);
    const account = network.switchboard.directory.account(line)!;
    assert.equal(account.keyless.size, 0);
    assert.deepEqual(network.switchboard.trust.standing(account), { restrictedUntil: 0, cap: null, started: 0 });
  } finally {
    await network.close();
  }
});

Deno.test("a field that the control API does not know is refused by its name", async () => {
  const network = await startNetwork({ runtime: testRuntime() });
  const app = controlApp(network);
  const line = "4917000000001";
  try {
    network.addPhone(line);
    for (
      const [path, asked, field] of [
        ["/phones", { number: "4917000000002", paskey: true }, "paskey"],
        ["/phones", { number: "4917000000002", business: { descripton: "Bakery" } }, "descripton"],
        [`/phones/${line}/messages`, { to: line, text: "Hello", hidenumber: true }, "hidenumber"],
        [`/phones/${line}/messages`, { to: line, file: "AA==", fileName: "a.pdf" }, "fileName"],
        [`/phones/${line}/call`, { to: line, vidoe: true }, "vidoe"],
        ["/groups", { subject: "Friends", participants: [line], addressingmode: "pn" }, "addressingmode"],
        ["/faults", { line, kind: "drop", counts: 2 }, "counts"],
        ["/faults", { line, kind: "new_salt", count: 2 }, "count"],
      ] as const
    ) {
      const init = { method: "POST", body: JSON.stringify(asked) };
      const response = await app.request(`http://127.0.0.1:8081${path}`, init);
      const { detail } = await response.json();
      assert.equal(response.status, 400, `${path} ${field}`);
      assert.match(detail, new RegExp(`"${field}"`));
    }
  } finally {
    await network.close();
  }
});

Deno.test("the code of a fault is a number, or its digits, and nothing that becomes one", async () => {
  const network = await startNetwork({ runtime: testRuntime() });
  const app = controlApp(network);
  const line = "4917000000001";
  const ask = async (error: unknown) => {
    const body = JSON.stringify({ line, kind: "nack", error });
    const response = await app.request("http://127.0.0.1:8081/faults", { method: "POST", body });
    return [response.status, (await response.json()).error];
  };
  try {
    network.addPhone(line);
    assert.deepEqual(await ask(463), [201, 463]);
    assert.deepEqual(await ask("463"), [201, 463]);
    for (const error of [[463], " 463 ", "4.63e2", true, null, 463.5, 600, 0]) {
      assert.deepEqual(await ask(error), [400, undefined], JSON.stringify(error));
    }
  } finally {
    await network.close();
  }
});

Deno.test("options of a passkey are refused where no passkey is asked for", async () => {
  const network = await startNetwork({ runtime: testRuntime() });
  const app = controlApp(network);
  const switchOn = (asked: Record<string, unknown>) => {
    const body = JSON.stringify({ number: "4917000000001", passkeyOptions: "query", ...asked });
    return app.request("http://127.0.0.1:8081/phones", { method: "POST", body });
  };
  try {
    for (const asked of [{}, { passkey: false }]) {
      const response = await switchOn(asked);
      assert.equal(response.status, 400);
      assert.deepEqual((await response.json()).errors.map(({ path }: { path: string }) => path), ["passkeyOptions"]);
    }
    assert.equal((await switchOn({ passkey: true })).status, 201);
    assert.equal(network.switchboard.directory.account("4917000000001")!.passkey?.options, "query");
  } finally {
    await network.close();
  }
});
