/** The control API is for programs on this machine, and for no page that a browser on it has open. */
import assert from "node:assert/strict";
import { controlApp } from "../../../../src/sandbox/control/app.ts";
import { type SandboxNetwork, startNetwork } from "../../../../src/sandbox/network.ts";
import { type TestRuntime, testRuntime } from "../../../support/runtime.ts";

const LINE = "4917000000001";

interface Scene {
  runtime: TestRuntime;
  network: SandboxNetwork;
  /** Requests a path of this machine, or a whole URL. */
  ask(path: string, init?: RequestInit): Promise<Response>;
  post(path: string, asked: unknown): Promise<Response>;
}

function onNetwork(name: string, test: (scene: Scene) => Promise<void>): void {
  Deno.test(name, async () => {
    const runtime = testRuntime();
    const network = await startNetwork({ runtime });
    const app = controlApp(network);
    const ask: Scene["ask"] = async (path, init) =>
      await app.request(path.startsWith("/") ? `http://127.0.0.1:8081${path}` : path, init);
    const post: Scene["post"] = (path, asked) => ask(path, { method: "POST", body: JSON.stringify(asked) });
    try {
      await test({ runtime, network, ask, post });
    } finally {
      await network.close();
    }
  });
}

onNetwork(
  "a page cannot operate the phones, neither from its own site nor by a name that points here",
  async (scene) => {
    const { network, ask } = scene;
    const phone = { method: "POST", body: JSON.stringify({ number: LINE }) };
    for (const origin of ["https://evil.example", "null", "http://127.0.0.1.evil.example:8081"]) {
      assert.equal((await ask("/phones", { ...phone, headers: { origin } })).status, 403, origin);
    }
    for (const host of ["evil.example", "127.0.0.1.evil.example", "0.0.0.0"]) {
      assert.equal((await ask(`http://${host}:8081/phones`)).status, 403, host);
    }
    assert.equal(network.phone(LINE), null);
    for (const host of ["127.0.0.1", "localhost", "[::1]"]) {
      assert.equal((await ask(`http://${host}:8081/phones`)).status, 200, host);
    }
    assert.equal((await ask("/phones", phone)).status, 201);
  },
);

onNetwork(
  "lifting a line's faults ends those without a time too: missing keys, a restriction, a cap",
  async (scene) => {
    const { runtime, network: { addPhone, switchboard }, ask, post } = scene;
    const until = runtime.clock.now() + 3_600_000;
    addPhone(LINE);
    for (
      const fault of [
        { kind: "no_keys", device: 0 },
        { kind: "restrict", until },
        { kind: "cap_new_chats", limit: 0, until },
      ]
    ) assert.equal((await post("/faults", { line: LINE, ...fault })).status, 201);
    assert.equal((await ask(`/faults/${LINE}`, { method: "DELETE" })).status, 200);
    const account = switchboard.directory.account(LINE)!;
    assert.equal(account.keyless.size, 0);
    assert.deepEqual(switchboard.trust.restrictions(account), { restrictedUntil: 0, cap: null, started: 0 });
  },
);

onNetwork("an unknown field is refused, and named", async ({ network, post }) => {
  network.addPhone(LINE);
  for (
    const [path, asked, field] of [
      ["/phones", { number: "4917000000002", paskey: true }, "paskey"],
      ["/phones", { number: "4917000000002", business: { descripton: "Bakery" } }, "descripton"],
      [`/phones/${LINE}/messages`, { to: LINE, text: "Hello", hidenumber: true }, "hidenumber"],
      [`/phones/${LINE}/messages`, { to: LINE, file: "AA==", fileName: "a.pdf" }, "fileName"],
      [`/phones/${LINE}/call`, { to: LINE, vidoe: true }, "vidoe"],
      ["/groups", { subject: "Friends", participants: [LINE], addressingmode: "pn" }, "addressingmode"],
      ["/faults", { line: LINE, kind: "drop", counts: 2 }, "counts"],
      ["/faults", { line: LINE, kind: "new_salt", count: 2 }, "count"],
    ] as const
  ) {
    const response = await post(path, asked);
    const { detail } = await response.json();
    assert.equal(response.status, 400, `${path} ${field}`);
    assert.match(detail, new RegExp(`\\b${field}: is not a known field`));
  }
});

onNetwork("what is missing or wrong in a request is named in plain words", async ({ network, post }) => {
  network.addPhone(LINE);
  const details = async (path: string, asked: unknown) => (await (await post(path, asked)).json()).detail;
  assert.equal(await details(`/phones/${LINE}/messages`, { to: LINE, txt: "Hello" }), "text: is required (and 1 more)");
  assert.equal(await details(`/phones/${LINE}/passkey/sign`, {}), "options: is required");
  assert.equal(await details("/groups", { subject: "", participants: "all" }), "subject: is empty (and 1 more)");
  assert.equal(
    await details("/faults", { line: LINE, kind: "nack", error: "x" }),
    "error: must be a code of three digits",
  );
  for (const fault of [{ line: LINE }, { line: LINE, kind: "boom" }]) {
    assert.match(await details("/faults", fault), /^kind: must be one of drop, replace, logout, .*, no_continuation$/);
  }
});

onNetwork("the code of a fault is an integer or its digits, and nothing is coerced", async ({ network, post }) => {
  const refusing = async (error: unknown) => {
    const response = await post("/faults", { line: LINE, kind: "nack", error });
    return [response.status, (await response.json()).error];
  };
  network.addPhone(LINE);
  assert.deepEqual(await refusing(463), [201, 463]);
  assert.deepEqual(await refusing("463"), [201, 463]);
  for (const error of [[463], " 463 ", "4.63e2", true, null, 463.5, 600, 0]) {
    assert.deepEqual(await refusing(error), [400, undefined], JSON.stringify(error));
  }
});

onNetwork("passkeyOptions are refused for a phone without a passkey", async ({ network, post }) => {
  const switchOn = (asked: Record<string, unknown>) =>
    post("/phones", { number: LINE, passkeyOptions: "query", ...asked });
  for (const asked of [{}, { passkey: false }]) {
    const response = await switchOn(asked);
    assert.equal(response.status, 400);
    assert.deepEqual((await response.json()).errors.map(({ path }: { path: string }) => path), ["passkeyOptions"]);
  }
  assert.equal((await switchOn({ passkey: true })).status, 201);
  assert.equal(network.switchboard.directory.account(LINE)!.passkey?.options, "query");
});
