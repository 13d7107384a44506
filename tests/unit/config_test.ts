import assert from "node:assert/strict";
import { urlsOfHosts } from "../../src/base/database_url.ts";
import { join } from "node:path";
import { configOf } from "../../src/cli/settings.ts";
import { readConfig, SettingsError } from "../../src/config.ts";
import type { SettingValues } from "../../src/settings.ts";

function problemsOf(values: SettingValues): readonly string[] {
  try {
    readConfig(values);
    return [];
  } catch (error) {
    assert.ok(error instanceof SettingsError);
    return error.problems;
  }
}

const CA = join(import.meta.dirname!, "..", "support", "tls", "ca.pem");

Deno.test("without settings there are defaults, and no problem", () => {
  const config = readConfig({});
  assert.deepEqual([config.host, config.port, config.sandboxPort, config.logLevel], ["127.0.0.1", 8080, 8081, "info"]);
});

Deno.test("every setting that is wrong is named, all of them together", () => {
  const wrong: SettingValues = {
    PALOMA_HOST: "256.1.1.1",
    PALOMA_PORT: "65536",
    PALOMA_MEDIA: "bucket",
    PALOMA_PUBLIC_URL: "paloma.example.com",
    PALOMA_SECRET_KEY: "short",
    PALOMA_LOG_LEVEL: "loud",
    PALOMA_TRUSTED_PROXIES: "10.0.0.0/8, proxy",
    PALOMA_OUTBOUND_ALLOW: "hooks.internal, http://hooks.internal",
    PALOMA_MIN_FREE_DISK: "much",
    PALOMA_MAX_BODIES: "many",
    PALOMA_MEDIA_DISK: "all",
    PALOMA_WHATSAPP_URL: "https://example.com",
    PALOMA_WHATSAPP_ROOT_KEY: "abc",
    PALOMA_WHATSAPP_MEDIA_URL: "ftp://example.com",
    PALOMA_WHATSAPP_CA: "/there/is/no/such/file.pem",
    PALOMA_WHATSAPP_VERSION: "2.3000",
    PALOMA_SANDBOX_PORT: "-1",
  };
  const problems = problemsOf(wrong);
  assert.deepEqual(problems.map((problem) => problem.split(":")[0]).sort(), Object.keys(wrong).sort());
});

Deno.test("a setting that is wrong is named as the operator wrote it", () => {
  const problems = (options: object) => {
    try {
      configOf(options);
      return [];
    } catch (error) {
      assert.ok(error instanceof SettingsError);
      return error.problems.map((problem) => problem.split(":")[0]);
    }
  };
  assert.deepEqual(problems({ port: "http", dataDir: "d", logLevel: "loud" }), ["--port", "--log-level"]);
  assert.deepEqual(problemsOf({ PORT: "http" }).map((problem) => problem.split(":")[0]), ["PORT"]);
  assert.deepEqual(problemsOf({ PORT: "http", PALOMA_PORT: "1" }), []);
});

Deno.test("hosts are addresses and names", () => {
  const names = ["0.0.0.0", "::", "::1", "localhost", "gateway_1", "a.example.com"];
  for (const host of names) {
    assert.deepEqual(problemsOf({ PALOMA_HOST: host }), [], host);
    assert.deepEqual(problemsOf({ PALOMA_OUTBOUND_ALLOW: host }), [], host);
  }
  assert.deepEqual(problemsOf({ PALOMA_OUTBOUND_ALLOW: "*.internal,10.0.0.0/8,fd00::/8" }), []);
  const ports = "n8n.local:5678,*.internal:1,10.0.0.0/8:65535,[fd00::7]:443,fd00::/8:443";
  assert.deepEqual(problemsOf({ PALOMA_OUTBOUND_ALLOW: ports }), []);
  assert.equal(problemsOf({ PALOMA_HOST: "a:80" }).length, 1);
  for (const host of ["a b", "a:b", "a:0", "10.0.0.0/8:65536", "http://a", "a/b", "*.*", "256.1.1.1", "!"]) {
    assert.equal(problemsOf({ PALOMA_HOST: host }).length, 1, host);
    assert.equal(problemsOf({ PALOMA_OUTBOUND_ALLOW: host }).length, 1, host);
  }
});

Deno.test("the certificates for media hosts are a file in PEM form", () => {
  assert.deepEqual(problemsOf({ PALOMA_WHATSAPP_CA: CA }), []);
  assert.equal(problemsOf({ PALOMA_WHATSAPP_CA: import.meta.filename! }).length, 1);
});

Deno.test("a problem says what is wrong with the value, and never shows a secret", () => {
  assert.deepEqual(problemsOf({ PALOMA_PORT: "http", PALOMA_TRUSTED_PROXIES: "proxy, ::1, 10.0.0.0/99" }), [
    'PALOMA_PORT: "http" is not a port number (0 to 65535)',
    'PALOMA_TRUSTED_PROXIES: "proxy" is neither an address nor a CIDR',
    'PALOMA_TRUSTED_PROXIES: "10.0.0.0/99" is neither an address nor a CIDR',
  ]);
  assert.deepEqual(problemsOf({ PALOMA_SECRET_KEY: "hunter2" }), ["PALOMA_SECRET_KEY: needs at least 16 characters"]);
});

Deno.test("what paths are added to has neither query nor fragment", () => {
  for (const name of ["PALOMA_PUBLIC_URL", "PALOMA_WHATSAPP_MEDIA_URL"] as const) {
    for (const end of ["?from=mail", "/#/", "/paloma?"]) {
      const [problem] = problemsOf({ [name]: `https://example.com${end}` });
      assert.match(problem ?? "none", / is not a URL with .*, without \? and #$/);
    }
  }
  assert.equal(
    readConfig({ PALOMA_PUBLIC_URL: "https://example.com/paloma//" }).publicUrl,
    "https://example.com/paloma",
  );
});

Deno.test("sizes may have a unit", () => {
  const bytes = (size: string) => readConfig({ PALOMA_MIN_FREE_DISK: size }).minFreeDisk;
  assert.deepEqual(["0", "1500", "64kb", "1.5 GB"].map(bytes), [0, 1_500, 64_000, 1_500_000_000]);
});

Deno.test("PORT counts where PALOMA_PORT says nothing", () => {
  assert.equal(readConfig({ PORT: "81" }).port, 81);
  assert.equal(readConfig({ PORT: "81", PALOMA_PORT: " " }).port, 81);
  assert.equal(readConfig({ PORT: "81", PALOMA_PORT: "82" }).port, 82);
});

Deno.test("what Kubernetes says of a service called paloma is no port", () => {
  assert.equal(readConfig({ PALOMA_PORT: "tcp://10.0.0.7:80" }).port, 8080);
  assert.equal(readConfig({ PALOMA_PORT: "tcp://10.0.0.7:80", PORT: "81" }).port, 81);
});

Deno.test("a shared store needs the secret key of all its machines, and is a server that we speak to", () => {
  const PALOMA_SECRET_KEY = "0123456789abcdef";
  const several = "postgres://u:p,@db1:5432,db2,[::1]:5433/paloma?target_session_attrs=read-write";
  for (const PALOMA_STORE of ["postgres://u:p@db/paloma", "postgresql://db/x", several, "https://kv.example/path"]) {
    const DENO_KV_ACCESS_TOKEN = "a token";
    assert.equal(readConfig({ PALOMA_STORE, PALOMA_SECRET_KEY, DENO_KV_ACCESS_TOKEN }).store, PALOMA_STORE);
    assert.throws(() => readConfig({ PALOMA_STORE }), /PALOMA_SECRET_KEY: is required with PALOMA_STORE/);
  }
  const faults: [string, RegExp][] = [
    ["mysql://u:secret@db/x", /is not a URL with postgres: or/],
    ["postgres://u:secret@db:x/x", /is not a URL$/],
    ["postgres://u:secret@db1,db2:99999/x", /host 2 of 2 is not like db1 or db1:5432$/],
    ["postgres://u:secret@db1,/x", /host 2 of 2/],
    ["postgres://u:secret@/x?host=db1,db2", /is not a URL$/],
    ["postgres:///x?host=db1,db2&password=secret", /put them before the database/],
    ["postgres://u:secret@db/x?ssl_mode=verify-full", /ssl_mode would be overlooked: .* by sslmode=verify-full$/],
    ["https://kv.example/path", /PALOMA_STORE: needs DENO_KV_ACCESS_TOKEN to be set$/],
    ["postgres://u:secret@db1,db2/x?target_session_attrs=standby", /target_session_attrs=standby is not read-write/],
  ];
  for (const [PALOMA_STORE, why] of faults) {
    assert.throws(
      () => readConfig({ PALOMA_STORE, PALOMA_SECRET_KEY }),
      (error: Error) => why.test(error.message) && !error.message.includes("secret"),
      PALOMA_STORE,
    );
  }
});

Deno.test("a database's URL with several hosts is one for each of them", () => {
  assert.deepEqual(urlsOfHosts("postgres://u:p,@db1:5432,[::1]:5433,db2/paloma?a=b,c"), [
    "postgres://u:p,@db1:5432/paloma?a=b,c",
    "postgres://u:p,@[::1]:5433/paloma?a=b,c",
    "postgres://u:p,@db2/paloma?a=b,c",
  ]);
  for (const one of ["postgres://db", "postgres:///x?host=/run/postgresql", "postgresql://a,b@db/x,y"]) {
    assert.deepEqual(urlsOfHosts(one), [one]);
  }
});

Deno.test("a bucket is a URL with the usual variables of AWS beside it", () => {
  const keys = { AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "secret" };
  assert.deepEqual(
    readConfig({ ...keys, PALOMA_MEDIA: "s3://files/a/b/?endpoint=http://127.0.0.1:9000/&region=eu-west-1" }).media,
    {
      bucket: "files",
      prefix: "a/b/",
      endpoint: "http://127.0.0.1:9000",
      region: "eu-west-1",
      accessKeyId: "id",
      secretAccessKey: "secret",
      sessionToken: null,
    },
  );
  const { media } = readConfig({
    ...keys,
    PALOMA_MEDIA: "s3://files",
    AWS_REGION: "sa-east-1",
    AWS_SESSION_TOKEN: "t",
  });
  assert.deepEqual([media?.prefix, media?.endpoint, media?.region, media?.sessionToken], ["", null, "sa-east-1", "t"]);
  // As compose files and secrets in files leave them.
  const blank = { AWS_ACCESS_KEY_ID: "id\n", AWS_SECRET_ACCESS_KEY: " secret", AWS_REGION: "", AWS_SESSION_TOKEN: " " };
  assert.deepEqual(readConfig({ ...blank, PALOMA_MEDIA: "s3://files?region=" }).media, {
    ...readConfig({ ...keys, PALOMA_MEDIA: "s3://files" }).media,
    region: "us-east-1",
  });
  for (const PALOMA_MEDIA of ["https://files", "s3://", "s3://files?bucket=x", "s3://files?endpoint=files"]) {
    assert.match(problemsOf({ ...keys, PALOMA_MEDIA }).join(), /^PALOMA_MEDIA: .* is not a URL like s3:/);
  }
  assert.match(problemsOf({ PALOMA_MEDIA: "s3://files" }).join(), /needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/);
});
