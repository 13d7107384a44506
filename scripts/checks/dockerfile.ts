/**
 * Carries out the Dockerfile's steps without a container engine: each stage in a folder of its own that is the root of
 * what runs in it. It builds on this machine's own system in place of the image of the first stage, and on the shared
 * libraries that the executable names in place of the last one's. Then the ENTRYPOINT runs as compose.yaml has it run:
 * as nobody's user, on a root that cannot be written, without capabilities; HEALTHCHECK and the command of the compose
 * file's first lines have to answer. On Linux, as root: it mounts, in a mount namespace of its own.
 */
import { dirname, join } from "node:path";
import { Option } from "commander";
import { sleep, systemClock } from "../../src/runtime.ts";
import { freePort } from "../../tests/support/free_port.ts";
import { parsed, scriptCommand } from "../command.ts";

const HERE = new URL("../..", import.meta.url).pathname;
const USER = 65532;
/** The Dockerfile's start period. */
const HEALTHY_WITHIN_MS = 20_000;
const ASK_EVERY_MS = 250;
/** This machine's system, as the root of a build stage sees it. */
const SYSTEM = ["usr", "bin", "sbin", "lib", "lib64", "etc"];
const TOOLS = "opt/build";

interface Stage {
  readonly root: string;
  /** With its tag, without its digest. */
  readonly image: string;
  workdir: string;
  env: Record<string, string>;
  healthcheck: string[];
  entrypoint: string[];
  command: string[];
}

type Step = [instruction: string, rest: string];

function stepsOf(dockerfile: string): Step[] {
  const lines = dockerfile.replace(/^#.*\n/gm, "").replace(/\\\n/g, " ").split("\n");
  return lines.map((line) => line.trim()).filter((line) => line !== "").map((line) => {
    const [instruction, ...rest] = line.split(/\s+/);
    return [instruction!, rest.join(" ")];
  });
}

async function run(name: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(name, { args, stdin: "null" }).output();
  const said = new TextDecoder().decode(stdout);
  if (code !== 0) {
    throw new Error(`${name} ${args.join(" ")} ended with ${code}:\n${said}${new TextDecoder().decode(stderr)}`);
  }
  return said;
}

async function bind(from: string, to: string): Promise<void> {
  if ((await Deno.stat(from)).isDirectory) await Deno.mkdir(to, { recursive: true });
  else await Deno.mkdir(dirname(to), { recursive: true }).then(() => Deno.writeTextFile(to, ""));
  await run("mount", "--bind", from, to);
}

/** What every container has. */
async function devices(root: string): Promise<void> {
  await bind("/proc", join(root, "proc"));
  await bind("/dev", join(root, "dev"));
  await Deno.mkdir(join(root, "tmp"), { recursive: true });
  await run("chmod", "1777", join(root, "tmp"));
}

/** Stands in for an image of Deno: this machine's system, Deno on the PATH, and its cache where the image has it. */
async function denoImage(stage: Stage): Promise<void> {
  const wanted = stage.image.split("-").at(-1);
  console.log(`        in place of the image: this machine's system and its Deno ${Deno.version.deno}`);
  if (wanted !== Deno.version.deno) throw new Error(`the image has Deno ${wanted}: run this check with that one`);
  for (const name of SYSTEM) {
    const link = await Deno.readLink(`/${name}`).catch(() => null);
    if (link !== null) await Deno.symlink(link, join(stage.root, name));
    else if (await Deno.stat(`/${name}`).catch(() => null)) await bind(`/${name}`, join(stage.root, name));
  }
  const { denoDir } = JSON.parse(await run(Deno.execPath(), "info", "--json"));
  await bind(denoDir, join(stage.root, "deno-dir"));
  await bind(Deno.execPath(), join(stage.root, TOOLS, "deno"));
  stage.env = { PATH: `/${TOOLS}:/usr/local/bin:/usr/bin:/bin`, DENO_DIR: "/deno-dir", HOME: "/tmp", NO_COLOR: "1" };
  // Where Deno's runtime cannot be downloaded, the caller has named another one.
  for (const name of ["COMPILE_DENO", "DENORT_BIN"]) {
    const path = Deno.env.get(name);
    if (!path) continue;
    await bind(path, join(stage.root, TOOLS, name));
    stage.env[name] = `/${TOOLS}/${name}`;
  }
}

/** Stands in for a distroless image: a user, certificates, and later the libraries that the executable names. */
async function distrolessImage(stage: Stage): Promise<void> {
  const { root, image } = stage;
  if (!image.endsWith(":nonroot")) throw new Error(`${image} does not run as nonroot`);
  stage.env = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME: "/home/nonroot" };
  console.log("        in place of the image: an empty root with the C library, certificates and the user nonroot");
  await Deno.mkdir(join(root, "etc/ssl/certs"), { recursive: true });
  await Deno.copyFile("/etc/ssl/certs/ca-certificates.crt", join(root, "etc/ssl/certs/ca-certificates.crt"));
  await Deno.writeTextFile(join(root, "etc/passwd"), `nonroot:x:${USER}:${USER}:nonroot:/home/nonroot:/sbin/nologin\n`);
  await Deno.writeTextFile(join(root, "etc/group"), `nonroot:x:${USER}:\n`);
}

async function libraries(executable: string, root: string): Promise<void> {
  for (const [path] of (await run("ldd", executable)).matchAll(/\/\S+/g)) {
    if (!path.includes("/lib")) continue;
    await Deno.mkdir(join(root, dirname(path)), { recursive: true });
    await Deno.copyFile(path, join(root, path));
  }
}

/** What `.dockerignore` lets through: only the lines that begin with `!`. */
async function contextOf(): Promise<string[]> {
  const lines = (await Deno.readTextFile(join(HERE, ".dockerignore"))).trim().split("\n");
  if (lines[0] !== "*" || lines.slice(1).some((line) => !line.startsWith("!"))) {
    throw new Error("this check reads a .dockerignore that leaves out all but what it names");
  }
  return lines.slice(1).map((line) => line.slice(1));
}

async function copy(stage: Stage, rest: string, named: Map<string, Stage>): Promise<void> {
  const words = rest.split(" ");
  const flag = (name: string) => words.find((word) => word.startsWith(`--${name}=`))?.split("=")[1];
  const paths = words.filter((word) => !word.startsWith("--"));
  const to = paths.pop()!;
  const target = join(stage.root, to.startsWith("/") ? to : join(stage.workdir, to));
  const from = flag("from");
  const context = await contextOf();
  for (const path of paths) {
    const seen = from !== undefined || context.some((entry) => path === entry || path.startsWith(`${entry}/`));
    if (!seen) throw new Error(`COPY ${path}: .dockerignore leaves it out`);
    const source = join(from === undefined ? HERE : named.get(from)!.root, path);
    const isFolder = (await Deno.stat(source)).isDirectory;
    await Deno.mkdir(isFolder || to.endsWith("/") ? target : dirname(target), { recursive: true });
    await run("cp", "-r", isFolder ? `${source}/.` : source, target);
    // Root's, else another user's that is not this machine's but the image's.
    await run("chown", "-R", flag("chown") === "nonroot:nonroot" ? `${USER}:${USER}` : "0:0", target);
  }
}

async function take([instruction, rest]: Step, stage: Stage, named: Map<string, Stage>): Promise<void> {
  switch (instruction) {
    case "WORKDIR":
      stage.workdir = rest;
      return await Deno.mkdir(join(stage.root, rest), { recursive: true });
    case "COPY":
      return await copy(stage, rest, named);
    case "RUN": {
      const env = Object.entries(stage.env).map(([name, value]) => `${name}=${value}`);
      const script = `cd ${stage.workdir} && ${rest}`;
      return void await run("chroot", stage.root, "/usr/bin/env", "-i", ...env, "/bin/sh", "-ec", script);
    }
    case "ENV":
      for (const pair of rest.split(" ").filter(Boolean)) {
        const [name, value] = pair.split("=");
        stage.env[name!] = value!;
      }
      return;
    case "ARG":
      // BuildKit knows the value of this one.
      if (rest !== "TARGETARCH") throw new Error(`this check knows no value of ${rest}`);
      stage.env[rest] = Deno.build.arch === "aarch64" ? "arm64" : "amd64";
      return;
    case "VOLUME":
    case "EXPOSE":
      return;
    case "HEALTHCHECK":
      stage.healthcheck = JSON.parse(rest.slice(rest.indexOf("CMD") + 3));
      return;
    case "ENTRYPOINT":
      stage.entrypoint = JSON.parse(rest);
      return;
    case "CMD":
      stage.command = JSON.parse(rest);
      return;
    default:
      throw new Error(`this check does not know ${instruction}`);
  }
}

/** A command in the container: as nonroot, and nothing that it starts can be more. */
function inContainer({ root, env }: Stage, command: string[]): Deno.Command {
  const confined = ["--no-new-privs", "chroot", `--userspec=${USER}:${USER}`, "--groups=", root, ...command];
  return new Deno.Command("setpriv", { args: confined, clearEnv: true, env, stdin: "null" });
}

/** Runs the result as compose.yaml says; throws unless it becomes healthy, answers, and ends with 0. */
async function serveReadOnly(stage: Stage): Promise<void> {
  const { root } = stage;
  await libraries(join(root, stage.entrypoint[0]!), root);
  await devices(root);
  // A new volume holds what the image has there.
  const volume = `${root}-volume`;
  await run("cp", "-a", join(root, "data"), volume);
  await run("mount", "--rbind", root, root);
  await run("mount", "-o", "remount,bind,ro", root);
  await run("mount", "--bind", volume, join(root, "data"));
  await run("mount", "-t", "tmpfs", "tmpfs", join(root, "tmp"));
  // The port of the image may be in use on this machine: there is no network namespace here.
  stage.env.PALOMA_PORT = String(freePort());

  const began = performance.now();
  const child = inContainer(stage, [...stage.entrypoint, ...stage.command]).spawn();
  let healthy = false;
  while (!healthy && performance.now() - began < HEALTHY_WITHIN_MS) {
    await sleep(systemClock, ASK_EVERY_MS);
    healthy = (await inContainer(stage, stage.healthcheck).output()).success;
  }
  try {
    if (!healthy) throw new Error("it did not get healthy");
    console.log(`ok      HEALTHCHECK answers, ${Math.round(performance.now() - began)} ms after the start`);
    const status = await Deno.readTextFile(`/proc/${child.pid}/status`);
    if (!status.includes(`Uid:\t${USER}\t`) || !/CapEff:\t0+\n/.test(status)) {
      throw new Error("it runs as somebody else");
    }
    console.log("ok      it runs as nonroot, without capabilities, on a root that is read-only");
    const command = [...stage.entrypoint, "account", "create", "--name", "acme", "--plan", "own"];
    const { code, stdout, stderr } = await inContainer(stage, command).output();
    if (code !== 0) throw new Error(new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr));
    console.log("ok      the command of compose.yaml makes an account");
  } finally {
    child.kill("SIGTERM");
  }
  const { code } = await child.status;
  if (code !== 0) throw new Error(`it ended with ${code} on SIGTERM`);
  console.log("ok      SIGTERM ends it with 0");
}

async function check(folder: string): Promise<void> {
  console.log("No container engine is used: the Dockerfile's steps are taken in folders, by chroot.");
  await run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder);
  const named = new Map<string, Stage>();
  let stage: Stage | null = null;
  for (const step of stepsOf(await Deno.readTextFile(join(HERE, "Dockerfile")))) {
    const [instruction, rest] = step;
    const began = performance.now();
    if (instruction === "FROM") {
      const [image, name] = rest.replace(/--platform=\$BUILDPLATFORM |@sha256:\w+/g, "").split(" AS ");
      console.log(`        FROM ${rest}`);
      const root = join(folder, String(named.size));
      stage = { root, image: image!, workdir: "/", env: {}, healthcheck: [], entrypoint: [], command: [] };
      named.set(name ?? "", stage);
      await Deno.mkdir(root);
      await (image!.startsWith("denoland/deno:") ? denoImage(stage).then(() => devices(root)) : distrolessImage(stage));
    } else {
      await take(step, stage!, named);
      console.log(`ok      ${instruction} ${rest}  (${((performance.now() - began) / 1000).toFixed(1)} s)`);
    }
  }
  await serveReadOnly(stage!);
}

const command = scriptCommand("dockerfile", "Carries out the Dockerfile's steps without a container engine; needs root")
  .addOption(new Option("--in-namespace <folder>", "where it may mount").hideHelp());
const { options: { inNamespace } } = parsed<{ inNamespace?: string }>(command);
if (inNamespace !== undefined) await check(inNamespace);
else {
  const folder = await Deno.makeTempDir({ prefix: "paloma-docker-" });
  const args = ["--mount", "--propagation", "private", Deno.execPath(), "run", "-A", "--no-check"];
  args.push(import.meta.filename!, "--in-namespace", folder);
  const { code } = await new Deno.Command("unshare", { args }).spawn().status;
  await Deno.remove(folder);
  Deno.exit(code);
}
