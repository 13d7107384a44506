/**
 * A gateway with few open files and very many clients that are silent, slow, deaf or gone half-way: it must stay up and
 * answer honest ones, from an address of their own: one address has half of the connections at most.
 * Needs bash and curl. Exits 0 when all honest requests were answered and the gateway stopped when asked, else 1.
 */
import { sleep, systemClock } from "../../src/runtime.ts";
import { parsed, scriptCommand, whole } from "../command.ts";

const command = scriptCommand("slow_clients", "Holds a gateway with few open files to its answers beside slow clients")
  .option("--clients <n>", "how many are slow", whole, 5_000)
  .option("--files <n>", "how many the gateway may have open", whole, 1_024)
  .option("--seconds <n>", "how long honest clients ask", whole, 20);
const { options: { clients, files, seconds } } = parsed<Record<"clients" | "files" | "seconds", number>>(command);

const folder = await Deno.makeTempDir();
const main = new URL("../../main.ts", import.meta.url).pathname;
const gateway = new Deno.Command("bash", {
  args: ["-c", `ulimit -n ${files}; exec "$0" run -A --no-check "$1" serve`, Deno.execPath(), main],
  env: { PALOMA_DATA_DIR: folder, PALOMA_PORT: "0", PALOMA_LOG_LEVEL: "info" },
  stdout: "piped",
  stderr: "piped",
}).spawn();
let log = "";
const reading = (async () => {
  for await (const text of gateway.stderr.pipeThrough(new TextDecoderStream())) log += text;
})();
const ended = gateway.status;
let exited = false;
ended.then(() => exited = true);

async function until(done: () => boolean, what: string): Promise<void> {
  for (const end = systemClock.now() + 30_000; !done();) {
    if (exited || systemClock.now() > end) throw new Error(`${what}\n${log.slice(-2_000)}`);
    await sleep(systemClock, 50);
  }
}

const urlOf = () => /"url":"http:\/\/127\.0\.0\.1:(\d+)"|http:\/\/127\.0\.0\.1:(\d+)/.exec(log);
await until(() => urlOf() !== null, "the gateway did not start");
const port = Number(urlOf()!.slice(1).find(Boolean));

const open: Deno.TcpConn[] = [];
const encoder = new TextEncoder();
const kinds = ["silent", "slow", "half-closed", "slow body", "deaf"] as const;

/** Connects, and misbehaves until the gateway hangs up. */
async function misbehave(kind: typeof kinds[number]): Promise<void> {
  try {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port });
    open.push(connection);
    if (kind === "half-closed") {
      await connection.write(encoder.encode("GET /healthz HTTP/1.1\r\n"));
      await connection.closeWrite();
    }
    if (kind === "slow body") {
      await connection.write(
        encoder.encode("POST /v1/messages/send/text HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n{"),
      );
    }
    if (kind === "deaf") {
      await connection.write(encoder.encode("GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(10)));
    }
    while (kind === "slow" && !exited && !over) {
      await connection.write(encoder.encode("G"));
      await sleep(systemClock, 1_000);
    }
  } catch {
    // The gateway hung up, or accepts no more at the moment.
  }
}

async function askFrom(address: string): Promise<boolean> {
  const { stdout } = await new Deno.Command("curl", {
    args: ["-s", "-m", "5", "--interface", address, `http://127.0.0.1:${port}/readyz`],
  }).output();
  return new TextDecoder().decode(stdout).includes('"ok"');
}

let over = false;
let answered = 0, unanswered = 0, worstMs = 0;
for (let i = 0; i < clients; i++) {
  void misbehave(kinds[i % kinds.length]!);
  if (i % 100 === 99) await sleep(systemClock, 20);
}
for (const end = systemClock.now() + seconds * 1000; systemClock.now() < end && !exited;) {
  const begun = systemClock.now();
  const ok = await askFrom("127.0.0.2");
  ok ? answered++ : unanswered++;
  worstMs = Math.max(worstMs, systemClock.now() - begun);
  await sleep(systemClock, 100);
}
over = true;
const died = exited;
if (!died) gateway.kill("SIGTERM");
const { code } = await ended;
await reading;
for (const connection of open) {
  try {
    connection.close();
  } catch {
    // Ended already.
  }
}
await gateway.stdout.cancel();
await Deno.remove(folder, { recursive: true });
const report = { clients, files, connected: open.length, answered, unanswered, worstMs, died, code };
console.log(JSON.stringify(report));
Deno.exit(!died && unanswered === 0 && answered > 0 && code === 0 ? 0 : 1);
