/** Prints the bill of materials of the executable: every package that it carries, as CycloneDX 1.6 (JSON). */
import { VERSION } from "../src/shipped.ts";
import { packages } from "./packages.ts";

const lock: { npm: Record<string, { integrity?: string }> } = JSON.parse(
  await Deno.readTextFile(new URL("../deno.lock", import.meta.url)),
);

/** Hex SHA-512 of the package's archive, as the lock file has it; the lock's names may say more than name and version. */
function hashOf(id: string): { alg: string; content: string }[] {
  const integrity = lock.npm[id]?.integrity;
  if (!integrity?.startsWith("sha512-")) return [];
  return [{ alg: "SHA-512", content: Uint8Array.fromBase64(integrity.slice("sha512-".length)).toHex() }];
}

const purl = (name: string, version: string) => `pkg:npm/${name.replace("@", "%40")}@${version}`;

console.log(JSON.stringify(
  {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: { type: "application", name: "paloma", version: VERSION } },
    components: [
      { type: "platform", name: "deno", version: Deno.version.deno },
      ...(await packages()).map(({ id, name, version }) => ({
        type: "library",
        "bom-ref": id,
        name,
        version,
        purl: purl(name, version),
        hashes: hashOf(id),
      })),
    ],
  },
  null,
  2,
));
