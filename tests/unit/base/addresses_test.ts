import assert from "node:assert/strict";
import { isInNetworks, isNetwork, parseNetwork, subscriberOf } from "../../../src/base/addresses.ts";

Deno.test("an address lies in a list of addresses and CIDRs, in either form of IPv4", () => {
  const networks = ["10.0.0.7", "192.168.0.0/16", "fd00::7", "2001:db8::/32"].map(parseNetwork);
  for (const inside of ["10.0.0.7", "::ffff:10.0.0.7", "192.168.3.4", "fd00::7", "2001:db8:1::1"]) {
    assert.ok(isInNetworks(networks, inside), inside);
  }
  for (const outside of ["10.0.0.8", "192.169.0.1", "fd00::8", "2001:db9::1", "::a00:7", "", "localhost"]) {
    assert.ok(!isInNetworks(networks, outside), outside);
  }
  assert.ok(!isInNetworks([], "10.0.0.7"));
});

Deno.test("only an address or a CIDR is a network", () => {
  for (const text of ["10.0.0.7", "10.0.0.0/8", "::1", "fd00::/8"]) assert.ok(isNetwork(text), text);
  for (const text of ["", "localhost", "10.0.0.0/33", "10.0.0.0/"]) assert.ok(!isNetwork(text), text);
});

Deno.test("a subscriber has one address of IPv4, or a whole network of IPv6", () => {
  assert.equal(subscriberOf("203.0.113.7"), "203.0.113.7");
  assert.equal(subscriberOf("::ffff:203.0.113.7"), "203.0.113.7");
  assert.equal(subscriberOf("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  assert.equal(subscriberOf("2001:db8:1:2::1"), subscriberOf("2001:db8:1:2:ffff::"));
  assert.notEqual(subscriberOf("2001:db8:1:2::1"), subscriberOf("2001:db8:1:3::1"));
  for (const text of ["fd00::7", "fe80::1%eth0", "::1", ""]) assert.equal(subscriberOf(text), text);
});
