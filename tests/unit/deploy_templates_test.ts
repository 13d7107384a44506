/** The templates for platforms: each is of its format, has the product's version, and names settings that there are. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { parse } from "yaml";
import { FOREIGN, SETTINGS } from "../../src/settings.ts";
import { VERSION } from "../../src/shipped.ts";

const DEPLOY = join(import.meta.dirname!, "../../integrations/deploy");
const read = (path: string) => Deno.readTextFile(join(DEPLOY, path));

async function filesOf(folder: string): Promise<string[]> {
  const found = await Array.fromAsync(
    Deno.readDir(join(DEPLOY, folder)),
    ({ name, isDirectory }) => isDirectory ? filesOf(join(folder, name)) : [join(folder, name)],
  );
  return found.flat();
}

Deno.test("templates name settings that there are, and the product's version alone", async () => {
  const known = new Set<string>([...SETTINGS.map(({ env }) => env), ...FOREIGN]);
  let named = 0;
  for (const path of await filesOf("")) {
    const text = await read(path);
    for (const [setting] of text.matchAll(/\bPALOMA_[A-Z_]+\b/g)) {
      named++;
      assert.ok(known.has(setting), `${path}: ${setting}`);
    }
    for (const [, version] of text.matchAll(/(?:paloma:|^version: |^appVersion: "|defaultValue: ")(\d[\w.]+)/gm)) {
      assert.equal(version, VERSION, path);
    }
  }
  assert.ok(named > 15, `only ${named} were found`);
});

Deno.test("every template serves port 8080 and keeps /data", async () => {
  const coolify = parse(await read("coolify.yaml")).services.paloma;
  assert.ok(coolify.environment.includes("SERVICE_URL_PALOMA_8080"));
  const dokploy = parse(await read("dokploy/docker-compose.yml")).services.paloma;
  assert.deepEqual(dokploy.expose, [8080]);
  const caprover = parse(await read("caprover.yml"));
  const app = caprover.services["$$cap_appname"];
  assert.equal(caprover.captainVersion, 4);
  assert.equal(app.caproverExtra.containerHttpPort, "8080");
  for (const { volumes } of [coolify, dokploy, app]) assert.match(volumes[0], /:\/data$/);
  for (const { id } of caprover.caproverOneClickApp.variables) {
    assert.ok((await read("caprover.yml")).split(id).length > 2, `${id} is not used`);
  }
  const [{ type, data }] = JSON.parse(await read("easypanel.json")).services;
  assert.deepEqual([type, data.domains[0].port, data.mounts[0].mountPath], ["app", 8080, "/data"]);
  const { version, templates } = JSON.parse(await read("portainer.json"));
  assert.deepEqual([version, templates[0].ports, templates[0].volumes], ["3", ["8080:8080/tcp"], [{
    container: "/data",
  }]]);
});
