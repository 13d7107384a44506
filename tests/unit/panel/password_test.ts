import assert from "node:assert/strict";
import { makePasswords } from "../../../src/panel/logins/password.ts";
import { systemRandom } from "../../../src/runtime.ts";

const passwords = makePasswords(systemRandom);
const address = "127.0.0.1";

Deno.test("a password fits its own hash alone, however its signs are composed", async () => {
  const hash = await passwords.hash("contraseña muy larga", address);
  assert.match(hash, /^scrypt\$32768\$8\$3\$[\w-]{22}\$[\w-]{43}$/);
  assert.notEqual(hash, await passwords.hash("contraseña muy larga", address), "each has a salt of its own");
  assert.equal(await passwords.verify("contraseña muy larga".normalize("NFD"), { hash, address }), true);
  assert.equal(await passwords.verify("contrasena muy larga", { hash, address }), false);
});

Deno.test("nobody's hash is fitted by no password", async () => {
  assert.equal(await passwords.verify("whatever it is", { hash: null, address }), false);
});

Deno.test("a password is neither short nor endless", async () => {
  await assert.rejects(() => passwords.hash("nine char", address), /10 to 200 characters/);
  await assert.rejects(() => passwords.hash("x".repeat(201), address), /10 to 200 characters/);
});

Deno.test("a flood of attempts from one network delays others by one of them", async () => {
  const passwords = makePasswords(systemRandom, { cost: 2, passes: 1 });
  const ended: string[] = [];
  const verify = (address: string) =>
    passwords.verify("whatever it is", { hash: null, address }).then(() => ended.push(address));
  const flood = Array.from({ length: 40 }, (_, i) => verify(`2001:db8::${i}`));
  await Promise.all([...flood, verify("198.51.100.7")]);
  assert.ok(ended.indexOf("198.51.100.7") <= 2, `after ${ended.indexOf("198.51.100.7")} others`);
});
