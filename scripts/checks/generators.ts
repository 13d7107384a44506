/**
 * Generates clients from the OpenAPI document with the usual generators, compiles them, and lets each send a text and read
 * the events on a sandbox; then the phone must have every text. Needs Node.js, Go and Python; Java, with Maven, and PHP,
 * with Debian's php-guzzlehttp-guzzle, take part where they are. C# is generated, but neither compiled nor run.
 */
import { join } from "node:path";
import { openApiDocument } from "../../src/http/docs/openapi.ts";
import { openStage, withStage } from "../../tests/support/stage.ts";
import { parsed, scriptCommand } from "../command.ts";
import { canRun, isThere, run, TOOLS } from "./programs.ts";
import { SAMPLES } from "./generators/samples.ts";

const NPM = ["@hey-api/openapi-ts@0.99.0", "openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3"];
const PIP = ["openapi-python-client==0.29.1", "pydantic==2.14.4", "urllib3==2.8.0", "python-dateutil==2.9.0.post0"];
const OAPI_CODEGEN = "v2.8.2";
const JAR = "org/openapitools/openapi-generator-cli/7.25.0/openapi-generator-cli-7.25.0.jar";
const FROM_JAR = ["python", "java", "go", "php", "csharp", "typescript-fetch"];
const RECIPIENT = "447700900123";

const command = scriptCommand("generators", "Generates, compiles and tries clients of the OpenAPI document")
  .argument("[names...]", "parts of the clients' names; all if left out");
const { args: names } = parsed(command);
const isWanted = (name: string) => names.length === 0 || names.some((part) => name.includes(part));

const tools = join(TOOLS, "generators");
const folder = await Deno.makeTempDir({ prefix: "generators-" });
const document = join(folder, "openapi.json");
const inPython = join(tools, "python/bin");
const inNode = join(tools, "node/node_modules/.bin");

async function install(): Promise<void> {
  await Deno.mkdir(tools, { recursive: true });
  const wanted = JSON.stringify([NPM, PIP]);
  const isInstalled = await Deno.readTextFile(join(tools, "versions")).catch(() => "") === wanted;
  const codegen = isThere(join(tools, `oapi-codegen-${OAPI_CODEGEN}`));
  await Promise.all([
    isInstalled || run(tools, "npm", ["install", "--silent", "--no-audit", "--prefix", "node", ...NPM]),
    isInstalled ||
    run(tools, "python3", ["-m", "venv", "python"]).then(() =>
      run(tools, `${inPython}/pip`, ["install", "-q", ...PIP])
    ),
    codegen.then(async (there) => {
      if (there) return;
      const module = `github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@${OAPI_CODEGEN}`;
      await run(tools, "go", ["install", module], { GOBIN: tools });
      await Deno.rename(join(tools, "oapi-codegen"), join(tools, `oapi-codegen-${OAPI_CODEGEN}`));
    }),
  ]);
  await Deno.writeTextFile(join(tools, "versions"), wanted);
}

/** Generates with openapi-generator, in one process for all languages; resolves to false where there is no Maven. */
async function fromJar(): Promise<boolean> {
  if (!await canRun("mvn")) return false;
  const jar = join(Deno.env.get("HOME")!, ".m2/repository", JAR);
  if (!await isThere(jar)) {
    const artifact = "org.openapitools:openapi-generator-cli:7.25.0";
    await run(folder, "mvn", ["-q", "-B", "dependency:get", `-Dartifact=${artifact}`, "-Dtransitive=false"]);
  }
  const configs = FROM_JAR.map((name) => join(folder, `${name}.json`));
  for (const [i, generatorName] of FROM_JAR.entries()) {
    const outputDir = join(folder, `openapi-generator ${generatorName}`);
    const none = { apiDocs: "false", modelDocs: "false", apiTests: "false", modelTests: "false" };
    const config = { generatorName, inputSpec: document, outputDir, globalProperties: none };
    await Deno.writeTextFile(configs[i]!, JSON.stringify(config));
  }
  await run(folder, "java", ["-jar", jar, "batch", "--fail-fast", ...configs]);
  return true;
}
const jar = (() => {
  let made: Promise<boolean> | undefined;
  return () => made ??= fromJar();
})();

interface Client {
  /** The file of the sample in the client's folder. */
  file: string;
  /** Generates and compiles the client; resolves to the command that runs the sample, null if this machine has none. */
  build(folder: string): Promise<[string, ...string[]] | null>;
}

const deno = (file: string): [string, ...string[]] => {
  return [
    Deno.execPath(),
    "run",
    "-A",
    "--no-check",
    "--no-config",
    "--node-modules-dir=manual",
    "--unstable-sloppy-imports",
    file,
  ];
};
const goProgram = async (folder: string): Promise<[string]> => {
  await run(folder, "go", ["mod", "tidy"]);
  await run(folder, "go", ["build", "-o", "sample", "./main"]);
  return ["./sample"];
};
async function checkTypes(folder: string): Promise<void> {
  const options = { strict: true, noEmit: true, target: "es2022", module: "esnext", moduleResolution: "bundler" };
  const compilerOptions = { ...options, allowImportingTsExtensions: true, skipLibCheck: true, types: [] };
  await Deno.writeTextFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["**/*.ts"] }));
  await Deno.writeTextFile(join(folder, "node.d.ts"), "declare const process: { env: Record<string, string> };\n");
  await Deno.copyFile(join(tools, "node/package.json"), join(folder, "package.json"));
  await Deno.symlink(join(tools, "node/node_modules"), join(folder, "node_modules"));
  await run(folder, `${inNode}/tsc`, ["-p", "."]);
}

const CLIENTS: Record<keyof typeof SAMPLES, Client> = {
  "openapi-generator python": {
    file: "sample.py",
    build: async () => await jar() ? [`${inPython}/python`, "sample.py"] : null,
  },
  "openapi-generator java": {
    file: "src/main/java/Sample.java",
    build: async (folder) => {
      if (!await jar()) return null;
      const goals = ["compile", "dependency:build-classpath", "-Dmdep.outputFile=classpath"];
      await run(folder, "mvn", ["-q", "-B", "-o", ...goals]).catch(() => run(folder, "mvn", ["-q", "-B", ...goals]));
      return ["java", "-cp", `target/classes:${await Deno.readTextFile(join(folder, "classpath"))}`, "Sample"];
    },
  },
  "openapi-generator go": {
    file: "main/main.go",
    build: async (folder) => await jar() ? await goProgram(folder) : null,
  },
  "openapi-generator php": {
    file: "sample.php",
    build: async () => await jar() && await isThere("/usr/share/php/GuzzleHttp") ? ["php", "sample.php"] : null,
  },
  "openapi-generator typescript-fetch": {
    file: "sample.ts",
    build: async (folder) => {
      if (!await jar()) return null;
      await checkTypes(folder);
      return deno("sample.ts");
    },
  },
  "@hey-api/openapi-ts": {
    file: "sample.ts",
    build: async (folder) => {
      await run(folder, `${inNode}/openapi-ts`, ["-i", document, "-o", "made"]);
      for await (const { name } of Deno.readDir(join(folder, "made"))) {
        await Deno.rename(join(folder, "made", name), join(folder, name));
      }
      await checkTypes(folder);
      return deno("sample.ts");
    },
  },
  "openapi-typescript": {
    file: "sample.ts",
    build: async (folder) => {
      await run(folder, `${inNode}/openapi-typescript`, [document, "-o", "api.d.ts"]);
      await checkTypes(folder);
      return deno("sample.ts");
    },
  },
  "oapi-codegen": {
    file: "main/main.go",
    build: async (folder) => {
      const args = ["-generate", "types,client", "-package", "paloma", "-o", "paloma.go", document];
      await run(folder, join(tools, `oapi-codegen-${OAPI_CODEGEN}`), args);
      await Deno.writeTextFile(join(folder, "go.mod"), "module paloma\n\ngo 1.24\n");
      return await goProgram(folder);
    },
  },
  "openapi-python-client": {
    file: "sample.py",
    build: async (folder) => {
      const args = ["generate", "--path", document, "--meta", "none", "--output-path", "paloma", "--overwrite"];
      const said = await run(folder, `${inPython}/openapi-python-client`, args);
      if (said.includes("WARNING")) throw new Error(said);
      return [`${inPython}/python`, "sample.py"];
    },
  },
};

/** The operations of the document that the client has not, whatever its language makes of their names. */
async function missing(folder: string): Promise<string[]> {
  let written = "";
  const read = async (path: string): Promise<void> => {
    for await (const { name, isDirectory, isFile } of Deno.readDir(path)) {
      if (isDirectory) await read(join(path, name));
      else if (isFile && /\.(py|java|go|php|cs|ts)$/.test(name)) {
        written += name + await Deno.readTextFile(join(path, name));
      }
    }
  };
  await read(folder);
  const plain = written.replaceAll("_", "").toLowerCase();
  const paths: Record<string, Record<string, { operationId: string; path: string }>> = openApiDocument().paths as never;
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.values(item).map(({ operationId }) => operationId).filter((id) =>
      !plain.includes(id.toLowerCase()) && !written.includes(`"${path}"`)
    )
  );
}

let failed = 0;
await Deno.writeTextFile(document, JSON.stringify(openApiDocument()));
await install();
await withStage(openStage, async (stage) => {
  await stage.linkLine("447700900001");
  await stage.addPhone(RECIPIENT);
  const url = new URL(stage.gateway.baseUrl).origin;
  await Promise.all(
    Object.entries(CLIENTS).filter(([name]) => isWanted(name)).map(async ([name, { file, build }]) => {
      const own = join(folder, name.replace("/", " "));
      const text = `from ${name}`;
      try {
        await Deno.mkdir(join(own, file, ".."), { recursive: true });
        await Deno.writeTextFile(join(own, file), SAMPLES[name as keyof typeof SAMPLES].trimStart());
        const command = await build(own);
        if (command === null) return console.log(`${name}: not on this machine`);
        const lacks = await missing(own);
        if (lacks.length > 0) throw new Error(`it lacks ${lacks.join(", ")}`);
        const [program, ...args] = command;
        const env = { PALOMA_URL: url, PALOMA_KEY: stage.apiKey, TO: RECIPIENT, TEXT: text };
        const said = (await run(own, program, args, env)).trim();
        if (!/^msg_\w{26} (session\.qr|sandbox)$/.test(said)) throw new Error(`it said ${said}`);
        await stage.arrival(RECIPIENT, (message) => message.text === text);
        console.log(`${name}: ${said}, and the phone has it`);
      } catch (error) {
        failed++;
        console.log(`${name}: FAILED: ${error}`);
      }
    }),
  );
  if (!isWanted("openapi-generator csharp") || !await jar().catch(() => false)) return;
  const lacks = await missing(join(folder, "openapi-generator csharp"));
  if (lacks.length > 0) failed++;
  console.log(
    `openapi-generator csharp: ${lacks.length === 0 ? "every operation" : `FAILED: it lacks ${lacks.join(", ")}`}`,
  );
});
if (failed === 0) await Deno.remove(folder, { recursive: true });
else console.log(`what was made is in ${folder}`);
Deno.exit(failed === 0 ? 0 : 1);
