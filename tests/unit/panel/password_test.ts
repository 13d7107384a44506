import assert from "node:assert/strict";
import { makePasswords } from "../../../src/panel/logins/password.ts";
import { systemRandom } from "../../../src/runtime.ts";

const passwords = makePasswords(systemRandom);

Deno.test("a password fits its own hash alone, however its signs are composed", async () => {
  const hash = await passwords.hash("contraseña muy larga");
  assert.match(hash, /^scrypt\$32768\$8\$3\$[\w-]{22}\$[\w-]{43}$/);
  assert.notEqual(hash, await passwords.hash("contraseña muy larga"), "each has a salt of its own");
  assert.equal(await passwords.verify("contraseña muy larga".normalize("NFD"), hash), true);
  assert.equal(await passwords.verify("contrasena muy larga", hash), false);
});

Deno.test("nobody's hash is fitted by no password", async () => {
  assert.equal(await passwords.verify("whatever it is", null), false);
});

Deno.test("a password is neither short nor endless", async () => {
  await assert.rejects(() => passwords.hash("nine char"), /10 to 200 characters/);
  await assert.rejects(() => passwords.hash("x".repeat(201)), /10 to 200 characters/);
});
