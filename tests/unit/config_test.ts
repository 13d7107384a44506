import assert from "node:assert/strict";
import { join } from "node:path";
import { readConfig, type SettingValues } from "../../src/config.ts";

const CA = join(import.meta.dirname!, "..", "support", "tls", "ca.pem");

Deno.test("without settings there are defaults, and no problem", () => {
  const { config, problems } = readConfig({});
  assert.deepEqual(problems, []);
  assert.deepEqual([config.host, config.port, config.sandboxPort, config.logLevel], ["127.0.0.1", 8080, 8081, "info"]);
});

Deno.test("every setting that is wrong is named, all of them together", () => {
  const wrong: SettingValues = {
    PALOMA_HOST: "256.1.1.1",
    PALOMA_PORT: "65536",
    PALOMA_PUBLIC_URL: "paloma.example.com",
    PALOMA_SECRET_KEY: "short",
    PALOMA_LOG_LEVEL: "loud",
    PALOMA_TRUSTED_PROXIES: "10.0.0.0/8, proxy",
    PALOMA_OUTBOUND_ALLOW: "hooks.internal, http://hooks.internal",
    PALOMA_WHATSAPP_URL: "https://example.com",
    PALOMA_WHATSAPP_ROOT_KEY: "abc",
    PALOMA_WHATSAPP_MEDIA_URL: "ftp://example.com",
    PALOMA_WHATSAPP_CA: "/there/is/no/such/file.pem",
    PALOMA_WHATSAPP_VERSION: "2.3000",
    PALOMA_SANDBOX_PORT: "-1",
  };
  const { problems } = readConfig(wrong);
  assert.deepEqual(problems.map((problem) => problem.split(":")[0]).sort(), Object.keys(wrong).sort());
});

Deno.test("hosts are addresses and names", () => {
  const names = ["0.0.0.0", "::", "::1", "localhost", "gateway_1", "a.example.com"];
  for (const host of names) {
    assert.deepEqual(readConfig({ PALOMA_HOST: host }).problems, [], host);
    assert.deepEqual(readConfig({ PALOMA_OUTBOUND_ALLOW: host }).problems, [], host);
  }
  assert.deepEqual(readConfig({ PALOMA_OUTBOUND_ALLOW: "*.internal,10.0.0.0/8,fd00::/8" }).problems, []);
  for (const host of ["a b", "a:80", "http://a", "a/b", "*.*", "256.1.1.1", "!"]) {
    assert.equal(readConfig({ PALOMA_HOST: host }).problems.length, 1, host);
    assert.equal(readConfig({ PALOMA_OUTBOUND_ALLOW: host }).problems.length, 1, host);
  }
});

Deno.test("the certificates for media hosts are a file in PEM form", () => {
  assert.deepEqual(readConfig({ PALOMA_WHATSAPP_CA: CA }).problems, []);
  assert.equal(readConfig({ PALOMA_WHATSAPP_CA: import.meta.filename! }).problems.length, 1);
});
