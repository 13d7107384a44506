/** How the client of each language is checked, built, tested and used. */
import { join } from "node:path";
import { canRun, run, TOOLS } from "../programs.ts";

export interface Language {
  /** Of the code in the README. */
  fence: string;
  /** The ending of a file of code. */
  ending: string;
  /** Installs what is needed, checks the source and builds the package; `made`: a folder of its own. */
  build(folder: string, made: string): Promise<void>;
  /** The environment in which the README's shell commands install what was built. */
  shell(made: string): Record<string, string>;
  /** Runs a file, in a folder where the package is installed. */
  run(file: string): [program: string, ...args: string[]];
  /** Runs the package's own tests. */
  test(folder: string): [program: string, ...args: string[]];
  /** The program of `eachOnce`. */
  flood: string;
  /** Follows the README's receiver of webhooks: has it judge a genuine request and a false one. */
  webhook: string;
}

const PIP = ["httpx==0.28.1", "mypy==2.4.1", "build==1.6.1", "hatchling==1.32.0"];
const python = join(TOOLS, "clients/python/bin/python");

/** Debian's packages, as Composer would find them in a registry; Guzzle's loads those of PSR. */
const DEBIAN = {
  "psr/http-client": { version: "1.0.1", type: "metapackage" },
  "psr/http-factory": { version: "1.0.1", type: "metapackage" },
  "psr/http-message": { version: "1.0.1", type: "metapackage" },
  "guzzlehttp/guzzle": {
    version: "7.4.5",
    dist: { type: "path", url: "/usr/share/php/GuzzleHttp" },
    autoload: { files: ["autoload.php"] },
  },
};

export const LANGUAGES: Record<string, Language> = {
  php: {
    fence: "php",
    ending: "php",
    async build(folder, made) {
      await run(folder, "composer", ["validate", "--strict", "--no-check-version", "--no-check-lock"]);
      for (const path of ["src", "tests"]) {
        for await (const { name } of Deno.readDir(join(folder, path))) {
          await run(folder, "php", ["-l", join(path, name)]);
        }
      }
      if (await canRun("phpstan")) await run(folder, "phpstan", ["analyse", "--no-progress"]);
      else console.log("php: phpstan is not on this machine, so the types are not checked");
      const repositories = [
        { type: "path", url: folder, options: { symlink: false } },
        ...Object.entries(DEBIAN).map(([name, one]) => ({ type: "package", package: { name, ...one } })),
        { "packagist.org": false },
      ];
      await Deno.writeTextFile(join(made, "composer.json"), JSON.stringify({ repositories }));
    },
    shell: (made) => ({
      COMPOSER_HOME: join(made, "composer"),
      COMPOSER_ALLOW_SUPERUSER: "1",
      COMPOSER_NO_INTERACTION: "1",
    }),
    run: (file) => ["php", "-d", "error_reporting=-1", file],
    test: (folder) => ["phpunit", "--bootstrap", "vendor/autoload.php", join(folder, "tests")],
    flood: "tests/flood.php",
    webhook: `
$got = json_decode(file_get_contents(getenv('WEBHOOK')), true);
$body = base64_decode($got['body']);
echo receive($body, $got['headers'], $got['secrets']), ' ', receive("$body ", $got['headers'], $got['secrets']);
`,
  },
  python: {
    fence: "python",
    ending: "py",
    async build(folder, made) {
      const versions = join(TOOLS, "clients/python/versions");
      if (await Deno.readTextFile(versions).catch(() => "") !== PIP.join()) {
        await Deno.mkdir(join(TOOLS, "clients"), { recursive: true });
        await run(folder, "python3", ["-m", "venv", "--clear", join(TOOLS, "clients/python")]);
        await run(folder, python, ["-m", "pip", "install", "-q", ...PIP]);
        await Deno.writeTextFile(versions, PIP.join());
      }
      await run(folder, python, ["-m", "mypy", "--cache-dir", join(made, "mypy")]);
      await run(folder, python, ["-m", "build", "--no-isolation", "--outdir", join(made, "dist")]);
      // What an earlier run installed may be of another source.
      await run(folder, python, ["-m", "pip", "uninstall", "-q", "-y", "paloma-client"]);
    },
    shell: (made) => ({
      PATH: `${join(python, "..")}:${Deno.env.get("PATH")}`,
      PIP_NO_INDEX: "1",
      PIP_FIND_LINKS: join(made, "dist"),
    }),
    run: (file) => [python, "-W", "error", file],
    test: (folder) => [python, "-W", "error", join(folder, "tests/test_client.py")],
    flood: "tests/flood.py",
    webhook: `
import base64, json, os
got = json.loads(open(os.environ["WEBHOOK"]).read())
body = base64.b64decode(got["body"])
print(receive(body, got["headers"], got["secrets"]), receive(body + b" ", got["headers"], got["secrets"]))
`,
  },
};
