/**
 * Follows the pages of `integrations/` with the tools' own code where it can be had, against a gateway of its own: what
 * each tool sends is then at the phone. Liquid, Alertmanager, PHP and Composer are real; of Home Assistant it is what its
 * `rest` platform makes of the page's configuration. Needs Go, PHP and Composer; see `clients.ts`.
 */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { join } from "node:path";
import { Liquid } from "liquidjs";
import { parse } from "yaml";
import { freePort, listens } from "../../tests/support/free_port.ts";
import { openStage, type Stage, withStage } from "../../tests/support/stage.ts";
import { until } from "../../tests/support/until.ts";
import { parsed, scriptCommand } from "../command.ts";
import { LANGUAGES } from "./clients/languages.ts";
import { isThere, run, TOOLS } from "./programs.ts";
import { erpnext, typebot } from "./recipes/cloud.ts";

const ROOT = join(import.meta.dirname!, "../..");
const ALERTMANAGER = "v0.35.0";
const LINE = "447700900001";
/** The number on the pages. */
const TO = "447700900123";

const BETWEEN = { line: LINE, to: TO };

/** The code blocks of a page, in their order, with the gateway's address and key filled in. */
async function blocks(stage: Stage, page: string, language: string): Promise<string[]> {
  const text = await Deno.readTextFile(join(ROOT, "integrations", page));
  const found = [...text.matchAll(/^ *```(\w+)\n([^]*?)^ *```$/gm)].filter(([, kind]) => kind === language);
  assert.ok(found.length > 0, `${page} has no ${language}`);
  const origin = new URL(stage.gateway.baseUrl).origin;
  return found.map(([, , code]) =>
    code!.replaceAll("https://paloma.example.com", origin).replaceAll("pk_…", stage.apiKey)
  );
}

async function post(url: string, headers: Record<string, string>, body: string): Promise<number> {
  const response = await fetch(url, { method: "POST", headers, body });
  await response.body?.cancel();
  return response.status;
}

const RECIPES: Record<string, (stage: Stage) => Promise<void>> = {
  async "Uptime Kuma"(stage) {
    const [body] = await blocks(stage, "uptime-kuma.md", "liquid");
    const [headers] = await blocks(stage, "uptime-kuma.md", "json");
    const msg = '[Shop "Süd"] [🔴 Down] connect ECONNREFUSED\n{{ 1 }} \\ end';
    const sent = await new Liquid({ root: "./no-such-directory-uptime-kuma" }).parseAndRender(body!, {
      msg,
      name: "Shop",
    });
    assert.equal(await post(`${stage.gateway.baseUrl}/messages/send/text`, JSON.parse(headers!), sent), 202);
    await stage.arrival(TO, ({ text }) => text === msg);
  },

  async "Home Assistant"(stage) {
    const [configuration, automation] = (await blocks(stage, "home-assistant.md", "yaml")).map((text) => parse(text));
    const [notifier] = configuration.notify;
    assert.deepEqual([notifier.platform, notifier.method], ["rest", "POST_JSON"]);
    assert.equal(automation.action, `notify.${notifier.name}`);
    const message = "The washing machine is done: 0.7 kWh";
    const body = {
      [notifier.message_param_name]: message,
      [notifier.target_param_name]: [automation.data.target].flat()[0],
    };
    const headers = { "content-type": "application/json", ...notifier.headers };
    assert.equal(await post(notifier.resource, headers, JSON.stringify(body)), 202);
    await stage.arrival(TO, ({ text }) => text === message);
  },

  async Typebot(stage) {
    const [setting] = await blocks(stage, "typebot.md", "env");
    const [command] = await blocks(stage, "typebot.md", "sh");
    await typebot(stage, BETWEEN, setting!.trim().split("=")[1]!, command!);
  },

  async ERPNext(stage) {
    const [command] = await blocks(stage, "erpnext.md", "sh");
    await erpnext(stage, BETWEEN, `${new URL(stage.gateway.baseUrl).origin}/cloud`, command!);
  },

  async Alertmanager(stage) {
    const program = await alertmanager();
    const folder = await Deno.makeTempDir({ prefix: "alertmanager-" });
    const [config] = await blocks(stage, "alertmanager.md", "yaml");
    await Deno.writeTextFile(
      join(folder, "alertmanager.yml"),
      config!.replace("group_by:", "group_wait: 1s\n  group_by:"),
    );
    const address = `127.0.0.1:${freePort()}`;
    const args = ["--config.file=alertmanager.yml", `--web.listen-address=${address}`, "--cluster.listen-address="];
    const child = new Deno.Command(program, { args, cwd: folder, stdout: "null", stderr: "null" }).spawn();
    try {
      await until(() => listens(Number(address.split(":")[1])), "Alertmanager to listen");
      const alert = (job: string) => ({
        labels: { alertname: "PalomaLineDown", job },
        annotations: { summary: 'The line "Süd": down' },
      });
      const alerts = JSON.stringify([alert("one"), alert("two")]);
      assert.equal(await post(`http://${address}/api/v2/alerts`, { "content-type": "application/json" }, alerts), 200);
      await stage.arrival(TO, ({ text }) => text === 'FIRING (2) PalomaLineDown\nThe line "Süd": down');
    } finally {
      child.kill("SIGKILL");
      await child.status;
    }
    await Deno.remove(folder, { recursive: true });
  },

  async WooCommerce(stage) {
    const { build, shell } = LANGUAGES.php!;
    const made = await Deno.makeTempDir({ prefix: "woocommerce-" });
    await build(join(ROOT, "clients/php"), made);
    const [install] = await blocks(stage, "woocommerce.md", "sh");
    await run(made, "bash", ["-ec", install!], shell(made));
    const [receiver] = await blocks(stage, "woocommerce.md", "php");
    await Deno.writeTextFile(join(made, "receiver.php"), receiver!);
    await stage.api.call("PATCH", "/account", { country: "GB" });
    const port = freePort();
    const secret = "a secret of the webhook";
    const env = { PALOMA_URL: stage.gateway.baseUrl, PALOMA_API_KEY: stage.apiKey, WOOCOMMERCE_SECRET: secret };
    const args = ["-S", `127.0.0.1:${port}`, "receiver.php"];
    const child = new Deno.Command("php", { args, cwd: made, env, stdout: "null", stderr: "null" }).spawn();
    try {
      await until(() => listens(port), "the receiver to listen");
      const deliver = (order: typeof ORDER, key = secret) => {
        const body = JSON.stringify(order);
        const signature = createHmac("sha256", key).update(body).digest("base64");
        const headers = { "content-type": "application/json", "x-wc-webhook-topic": "order.updated" };
        return post(`http://127.0.0.1:${port}/`, { ...headers, "x-wc-webhook-signature": signature }, body);
      };
      const form = { "content-type": "application/x-www-form-urlencoded" };
      assert.equal(await post(`http://127.0.0.1:${port}/`, form, "webhook_id=1"), 200);
      assert.equal(await deliver(ORDER, "another secret"), 401);
      assert.equal(await deliver({ ...ORDER, status: "pending" }), 200);
      for (const status of ["processing", "processing", "completed"]) {
        assert.equal(await deliver({ ...ORDER, status }), 200);
      }
      assert.equal(await deliver({ ...ORDER, id: 728, billing: { ...ORDER.billing, phone: "12" } }), 200);
      await stage.arrival(TO, ({ text }) => text === "Hello Ana, your order 727 is on its way.");
      const texts = (await stage.inbox(TO)).map(({ text }) => text).filter((text) => text?.startsWith("Hello Ana"));
      assert.deepEqual(texts, [
        "Hello Ana, thank you. We are preparing your order 727.",
        "Hello Ana, your order 727 is on its way.",
      ]);
    } finally {
      child.kill("SIGKILL");
      await child.status;
    }
    await Deno.remove(made, { recursive: true });
  },
};

/** What WooCommerce posts of an order (API version 3), with one of each list. */
const ORDER = {
  id: 727,
  parent_id: 0,
  number: "727",
  order_key: "wc_order_58d2d042d1d",
  created_via: "checkout",
  version: "9.3.3",
  status: "processing",
  currency: "GBP",
  date_created: "2026-11-22T16:28:02",
  date_created_gmt: "2026-11-22T16:28:02",
  total: "29.35",
  customer_id: 0,
  customer_note: "",
  billing: {
    first_name: "Ana",
    last_name: "Doe",
    company: "",
    address_1: "969 Market",
    city: "London",
    postcode: "N1 1AA",
    country: "GB",
    email: "ana@example.com",
    phone: "07700 900123",
  },
  payment_method: "bacs",
  line_items: [{ id: 315, name: "Woo Single #1", product_id: 93, quantity: 2, total: "6.00", sku: "", price: 3 }],
  meta_data: [{ id: 13106, key: "_download_permissions_granted", value: "yes" }],
};

/** Builds Alertmanager once, without its pages, which the module does not hold; resolves to the program. */
async function alertmanager(): Promise<string> {
  const program = join(TOOLS, "bin", `alertmanager-${ALERTMANAGER}`);
  if (await isThere(program)) return program;
  const source = await Deno.makeTempDir({ prefix: "alertmanager-" });
  const module = `github.com/prometheus/alertmanager@${ALERTMANAGER}`;
  const { Dir: folder } = JSON.parse(await run(source, "go", ["mod", "download", "-json", module]));
  await run(source, "bash", [
    "-ec",
    `cp -r ${folder}/. . && chmod -R u+w . && mkdir -p ui/app/dist && touch ui/app/dist/index.html`,
  ]);
  await run(source, "go", ["build", "-o", program, "./cmd/alertmanager"]);
  await Deno.remove(source, { recursive: true });
  return program;
}

const { args: names } = parsed(
  scriptCommand("recipes", "Follows the pages of `integrations/`").argument("[names...]", "tools; all if left out"),
);
await withStage(openStage, async (stage) => {
  await stage.linkLine(LINE);
  await stage.addPhone(TO);
  for (const [name, follow] of Object.entries(RECIPES)) {
    if (names.length > 0 && !names.includes(name)) continue;
    await follow(stage);
    console.log(`${name}: what it sends is at the phone`);
  }
});
Deno.exit(0);
