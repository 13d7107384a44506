import assert from "node:assert/strict";
import { domainAllowed, ipAllowed, parseAllowedDomains, parseAllowedIps } from "../../../src/account/account.ts";
import { Problem } from "../../../src/errors.ts";

function badPaths(run: () => unknown): string[] {
  try {
    run();
  } catch (error) {
    assert(error instanceof Problem);
    assert.equal(error.code, "validation_failed");
    return error.extras.errors?.map((field) => field.path) ?? [];
  }
  return [];
}

Deno.test("addresses and CIDRs of both families are taken, in canonical form and once", () => {
  const given = [
    "10.0.0.1",
    " 192.168.0.0/16",
    "2001:DB8::1",
    "2001:db8:0::/48",
    "::ffff:10.0.0.1",
    "::ffff:10.0.0.0/104",
  ];
  assert.deepEqual(parseAllowedIps(given), [
    "10.0.0.1",
    "192.168.0.0/16",
    "2001:db8::1",
    "2001:db8::/48",
    "10.0.0.0/8",
  ]);
});

Deno.test("what is neither an address nor a CIDR is refused, every bad entry by its place", () => {
  const bad = [
    "",
    "10.0.0",
    "10.0.0.256",
    "010.0.0.1/33",
    "0x7f.1",
    "10.0.0.0/33",
    "::1/129",
    "10.0.0.0/",
    "a.b",
    "fe80::1%eth0",
    "1.2.3.4/8/8",
  ];
  assert.deepEqual(badPaths(() => parseAllowedIps(["10.0.0.1", ...bad])), bad.map((_, i) => `allowedIps.${i + 1}`));
});

Deno.test("an address is allowed by itself and by a CIDR that holds it, also when IPv4 comes mapped", () => {
  const allowed = parseAllowedIps(["10.1.2.3", "192.168.0.0/16", "2001:db8::/32"]);
  for (const address of ["10.1.2.3", "::ffff:10.1.2.3", "192.168.255.255", "2001:db8:ffff::1"]) {
    assert(ipAllowed(allowed, address), address);
  }
  for (const address of ["10.1.2.4", "192.169.0.0", "2001:db9::1", "::1", "", "nonsense"]) {
    assert(!ipAllowed(allowed, address), address);
  }
});

Deno.test("no restriction allows every address and every page", () => {
  assert(ipAllowed([], "203.0.113.9"));
  assert(domainAllowed([], null));
});

Deno.test("a domain allows itself and its subdomains, and nothing that only ends like it", () => {
  const allowed = parseAllowedDomains(["Example.COM", "münchen.example", "localhost"]);
  assert.deepEqual(allowed, ["example.com", "xn--mnchen-3ya.example", "localhost"]);
  for (const host of ["example.com", "APP.example.com", "a.b.example.com", "xn--mnchen-3ya.example", "localhost"]) {
    assert(domainAllowed(allowed, host), host);
  }
  for (const host of ["badexample.com", "example.com.evil.test", "com", "", null]) {
    assert(!domainAllowed(allowed, host), String(host));
  }
});

Deno.test("a domain with scheme, port, path or wildcard is refused", () => {
  const bad = ["", "https://a.test", "a.test:8080", "a.test/x", "*.a.test", "a b", "user@a.test"];
  assert.deepEqual(badPaths(() => parseAllowedDomains(bad)), bad.map((_, i) => `allowedDomains.${i}`));
});
