/** nginx as `ops/nginx.conf` sets it up, before a gateway: TLS, and the whole of the gateway below `/paloma` too. */
import { join } from "node:path";
import { freePort, listens } from "./free_port.ts";
import { inTime, until } from "./until.ts";

const ROOT = join(import.meta.dirname!, "..", "..");
export const TLS = join(ROOT, "tests", "support", "tls");
const NGINX = "/usr/sbin/nginx";

export async function hasNginx(): Promise<boolean> {
  return await Deno.stat(NGINX).then(() => true, () => false);
}

/** nginx with the very file that the documentation gives, by default, but for ports, name and certificate. */
export async function startNginx(
  gatewayPort: string,
  folder: string,
  { port = freePort(), file = join(ROOT, "ops", "nginx.conf") } = {},
): Promise<{ url: string; stop(): Promise<void> }> {
  const given = await Deno.readTextFile(file);
  const site = given.replace("127.0.0.1:8080", `127.0.0.1:${gatewayPort}`)
    .replace("listen 443 ssl http2", `listen 127.0.0.1:${port} ssl http2`)
    .replaceAll("paloma.example.com;", "hook.test;")
    .replace(/ssl_certificate .*;/, `ssl_certificate ${TLS}/hook.test.cert.pem;`)
    .replace(/ssl_certificate_key .*;/, `ssl_certificate_key ${TLS}/hook.test.key.pem;`);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder};`);
  const config = [
    `pid ${folder}/nginx.pid; error_log ${folder}/error.log; daemon off; worker_processes 1;`,
    "events {}",
    `http { access_log off; ${temporary.join(" ")}\n${site}\n}`,
  ];
  await Deno.writeTextFile(join(folder, "nginx.conf"), config.join("\n"));
  const child = new Deno.Command(NGINX, {
    args: ["-c", join(folder, "nginx.conf"), "-e", join(folder, "error.log")],
    stdout: "null",
    stderr: "null",
  }).spawn();
  const url = `https://hook.test:${port}`;
  await until(() => listens(port), "nginx to listen");
  return {
    url,
    async stop() {
      child.kill("SIGTERM");
      await inTime(child.status, "nginx to end");
    },
  };
}
