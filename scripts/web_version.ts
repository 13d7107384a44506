/**
 * Writes the newest version of WhatsApp Web that is known into `src/whatsapp/baileys/pinned_version.ts`, before a
 * release. The list comes from the npm package `@wppconnect/wa-version`; needs npm and tar. With `--check`, fails if the
 * version that is pinned is older than 30 days: WhatsApp refuses one after four to five months.
 */
import { join } from "node:path";
import { PINNED_VERSION } from "../src/whatsapp/baileys/pinned_version.ts";

const PACKAGE = "@wppconnect/wa-version";
const TARGET = join(import.meta.dirname!, "..", "src/whatsapp/baileys/pinned_version.ts");
const MAY_BE_DAYS = 30;
const DAY_MS = 24 * 60 * 60_000;

interface Listed {
  version: string;
  released: string;
}

async function run(command: string, args: string[], cwd: string): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(command, { args, cwd }).output();
  if (!success) throw new Error(`${command} failed: ${new TextDecoder().decode(stderr)}`);
  return new TextDecoder().decode(stdout);
}

/** Resolves to the newest version in the package. */
async function newest(): Promise<Listed> {
  const folder = await Deno.makeTempDir();
  try {
    const archive = (await run("npm", ["pack", "--silent", PACKAGE], folder)).trim();
    const list = await run("tar", ["xzOf", archive, "package/versions.json"], folder);
    const { versions }: { versions: Listed[] } = JSON.parse(list);
    const revision = ({ version }: Listed) => Number(version.replace("-alpha", "").split(".")[2]);
    const [found] = versions.toSorted((a, b) => revision(b) - revision(a));
    if (!found || !revision(found)) throw new Error(`${PACKAGE} lists no version`);
    return { ...found, version: found.version.replace("-alpha", "") };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

if (Deno.args.includes("--check")) {
  const days = (Date.now() - Date.parse(PINNED_VERSION.releasedAt)) / DAY_MS;
  console.log(`${PINNED_VERSION.version} is ${days.toFixed(0)} days old`);
  if (days > MAY_BE_DAYS) Deno.exit(1);
} else {
  const { version, released } = await newest();
  await Deno.writeTextFile(
    TARGET,
    `/** The WhatsApp Web version of this release. Written by \`scripts/web_version.ts\`. */
export const PINNED_VERSION = { version: "${version}", releasedAt: "${released}" };
`,
  );
  console.log(`${version}, released ${released}`);
}
