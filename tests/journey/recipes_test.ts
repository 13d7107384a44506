/**
 * How to start, and the recipes: each is followed from an empty folder on the simulated network, and judged by what the
 * phones hold. Ends with a table of how long each took and how many lines its programs have.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { parse } from "yaml";
import { httpClient, type Json, linkByQr } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import { freePort } from "../support/free_port.ts";
import { tryProgram } from "../support/gateway_process.ts";
import { guides, ROOT } from "../support/guides.ts";
import { startNginx, TLS } from "../support/nginx.ts";
import { filesOf, Recipe, type RecipeOptions } from "../support/recipe.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { until } from "../support/until.ts";

/** The line of the account, and the customer of the pages, who has a phone of their own in each recipe. */
const LINE = "447700900001";
const CUSTOMER = "447700900123";

interface Followed {
  stage: Stage;
  /** The customer's number in this recipe. */
  customer: string;
  open(options?: RecipeOptions): Promise<Recipe>;
}

interface Entry {
  /** Programs that it runs, beside the shell and curl. */
  needs: readonly string[];
  follow(followed: Followed): Promise<void>;
}

/** By the name of the page. */
const RECIPES: Readonly<Record<string, Entry>> = {
  "recipes/first-message": {
    needs: ["python3"],
    async follow({ stage, customer, open }) {
      await using recipe = await open();
      await recipe.follow();
      await stage.arrival(customer, ({ text }) => text === "Hello from Paloma");
      assert.match(recipe.output, /^accepted msg_\w+\nsent/m);
    },
  },

  "recipes/invoice-from-php": {
    needs: ["php"],
    async follow({ stage, customer, open }) {
      await using recipe = await open();
      await recipe.follow();
      await stage.arrival(customer, ({ filename }) => filename === "Invoice 1042.pdf");
      const inbox = await stage.inbox(customer);
      const { size } = await Deno.stat(recipe.at("1042.pdf"));
      assert.deepEqual(inbox.map(({ type, caption, mimetype, size }) => ({ type, caption, mimetype, size })), [
        { type: "documentMessage", caption: "Your invoice 1042. Thank you!", mimetype: "application/pdf", size },
      ]);
      const [first, second] = recipe.output.trim().split("\n");
      assert.match(first!, /^msg_/);
      assert.equal(second, first);
    },
  },

  "recipes/incoming-webhook": {
    needs: ["node"],
    async follow({ stage, customer, open }) {
      const port = String(freePort());
      await using recipe = await open({ fill: [["3000", port]], staysUp: /^node / });
      await recipe.follow();
      const forged = await fetch(`http://localhost:${port}/`, { method: "POST", body: "{}" });
      await forged.body?.cancel();
      assert.equal(forged.status, 401);
      const { id } = await stage.control.call("POST", `/phones/${customer}/messages`, {
        to: LINE,
        text: "Is it ready?",
      });
      const answer = await stage.arrival(customer, ({ text }) => text === "You wrote: Is it ready?");
      assert.equal(answer.quoted.id, id);
      const [webhook] = (await stage.api.call("GET", "/webhooks")).data;
      await stage.api.call("DELETE", `/webhooks/${webhook.id}`);
    },
  },

  "recipes/answer-a-menu": {
    needs: ["node"],
    async follow({ stage, customer, open }) {
      await using recipe = await open({ staysUp: /^node / });
      await recipe.follow();
      // It begins with what comes after it has asked for the first time.
      await until(() => Deno.stat(recipe.at("cursor")).then(() => true, () => false), "the program's cursor");
      const write = (text: string) => stage.control.call("POST", `/phones/${customer}/messages`, { to: LINE, text });
      await write("Hello?");
      const menu = await stage.arrival(customer, ({ text }) => text?.startsWith("How can we help?"));
      assert.match(menu.text, /2\W+Where is my order\?/);
      await write("2");
      await stage.arrival(customer, ({ text }) => text === "It left today and arrives tomorrow.");
      assert.equal((await stage.inbox(customer)).length, 2);
    },
  },

  "recipes/offer-to-300": {
    needs: ["python3"],
    async follow({ stage, open }) {
      const customers = Array.from(
        { length: 300 },
        (_, i) => ({ number: `447700901${300 + i}`, name: `Customer ${i}` }),
      );
      for (const { number, name } of customers) await stage.addPhone(number, name);
      const [first, second, stopped] = customers;
      await stage.api.call("PUT", `/optouts/${stopped!.number}`);
      // The start of Tuesday: when the bulk is on disk.
      const at = new Date(Date.now() + 4_000).toISOString();
      await using recipe = await open({ fill: [["2026-12-01T09:00:00Z", at]] });
      const rows = [...customers, { ...first!, number: `+44 7700 901${first!.number.slice(-3)}` }];
      const csv = rows.map(({ number, name }) => `${number},${name}\n`).join("");
      await Deno.writeTextFile(recipe.at("customers.csv"), `number,name\n${csv}`);
      await recipe.follow();
      const [, total, bulkId] = /^(\d+) messages as (blk_\w+)/.exec(recipe.output)!;
      assert.equal(total, "299");
      await until(
        async () => (await stage.api.call("GET", `/bulks/${bulkId}`)).data.sent === 299,
        "the bulk to be sent",
      );
      for (const { number, name } of customers) {
        const texts = (await stage.inbox(number)).map(({ text }) => text);
        const offer = `Hello ${name}, on Tuesday all lamps are 20 % off. See you in the shop!`;
        assert.deepEqual(texts.map((text) => text.split("\n")[0]), number === stopped!.number ? [] : [offer]);
      }
      const [sent] = (await stage.control.call("GET", `/wire?line=${LINE}`)).slice(-1);
      assert.ok(sent.time >= Date.parse(at), "none left before its time");
      await stage.control.call("POST", `/phones/${second!.number}/messages`, { to: LINE, text: "stop" });
      await until(
        async () => (await stage.api.call("GET", "/optouts")).data.length === 2,
        "the customer on the list of opt-outs",
      );
    },
  },

  "recipes/remind-until-paid": {
    needs: ["php"],
    async follow({ stage, customer, open }) {
      const due = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
      const outcomes = async (invoice: string) =>
        (await stage.api.call("GET", `/messages/history?tag=invoice-${invoice}`)).data
          .map(({ status, error }: Json) => error?.code ?? status).sort();
      const notice = (invoice: string, to: string) =>
        stage.arrival(to, ({ text }) => text === `Invoice ${invoice} is due on ${due}. Thank you!`);
      await using paid = await open({ fill: [["2026-12-01", due], ["1042", "2042"]] });
      await paid.follow({ before: [/^php paid/, () => notice("2042", customer)] });
      assert.match(paid.output, /^3 reminders cancelled$/m);
      assert.deepEqual(await outcomes("2042"), ["cancelled", "cancelled", "cancelled", "sent"]);

      // Another customer writes before the reminders are due.
      const other = customer.replace("9002", "9003");
      await stage.addPhone(other, "Ben");
      await using answered = await open({ fill: [["2026-12-01", due], ["1042", "2043"], [CUSTOMER, other]] });
      const replies = async () => {
        await notice("2043", other);
        await stage.control.call("POST", `/phones/${other}/messages`, { to: LINE, text: "I have paid" });
        await until(
          async () => (await outcomes("2043")).filter((one: string) => one === "cancelled_by_reply").length === 3,
          "the reminders to be cancelled",
        );
      };
      await answered.follow({ before: [/^php paid/, replies] });
      assert.match(answered.output, /^0 reminders cancelled$/m);
    },
  },

  // While there is one account alone.
  start: {
    needs: [],
    async follow({ stage, customer, open }) {
      const phone = customer.replace("9002", "9003");
      await stage.addPhone(phone, "Office");
      await using recipe = await open();
      const scan = async () => {
        const { _id: sessionId } = await until(
          async () => (await stage.api.call("GET", "/sessions")).data.find(({ name }: Json) => name === "Office"),
          "the session of `paloma link`",
        );
        await linkByQr(systemClock, { api: stage.api, control: stage.control, sessionId, phone });
      };
      const answer = async () => {
        const { from } = await stage.arrival(customer, ({ text }) => text === "Hello from Paloma");
        const to = from.split(/[@:]/)[0];
        await stage.control.call("POST", `/phones/${customer}/messages`, { to, text: "It works" });
        const has = async () =>
          (await stage.api.call("GET", "/events?types=message.received&limit=1000")).data
            .some(({ data }: Json) => data.text === "It works");
        await until(has, "the answer among the events");
      };
      await recipe.follow({ during: [/^paloma link/, scan], before: [/events\?/, answer] });
      assert.match(recipe.output, /"text":"It works"/);
    },
  },

  "recipes/many-customers": {
    needs: ["python3"],
    async follow({ stage, customer, open }) {
      const buyer = customer.replace("9002", "9003");
      await stage.addPhone(buyer, "Carla");
      await using recipe = await open({ fill: [["447700900002", buyer]] });
      const types = async () => {
        const [, code] = await until(
          () => /with phone number: (\w+)/.exec(recipe.output),
          "the code for the customer's phone",
        );
        await stage.control.call("POST", `/phones/${customer}/enter-code`, { code });
      };
      await recipe.follow({ during: [/onboard\.py/, types] });
      const arrived = await stage.arrival(buyer, ({ text }) => text === "The corner shop is on WhatsApp");
      assert.equal(arrived.from.split(/[@:]/)[0], customer);
      const lines = (await stage.api.call("GET", "/sessions")).data.map(({ name }: Json) => name);
      assert.ok(!lines.includes("Corner shop"), "an account sees the lines of another");
      const shop = httpClient(stage.gateway.baseUrl, { "x-api-key": /^key (pk_\S+)/m.exec(recipe.output)![1]! });
      assert.deepEqual((await shop.call("GET", "/sessions")).data.map(({ phone }: Json) => phone), [customer]);
    },
  },

  "recipes/behind-a-proxy": {
    needs: ["nginx"],
    async follow({ stage, customer, open }) {
      await using temp = await tempFolder();
      const port = freePort();
      // A name and a certificate that curl knows.
      const settings = [`cacert = ${join(TLS, "ca.pem")}`, `resolve = hook.test:${port}:127.0.0.1`];
      await Deno.writeTextFile(join(temp.path, ".curlrc"), settings.join("\n"));
      const fill = [["chat.example.net/v1", `hook.test:${port}/v1`], ["chat.example.net", "hook.test"]] as const;
      await using recipe = await open({ fill: fill.toReversed(), env: { CURL_HOME: temp.path } });
      await using stack = new AsyncDisposableStack();
      const start = async () => {
        const file = recipe.at("paloma.conf");
        assert.match(await Deno.readTextFile(file), /server_name hook\.test;/);
        const nginx = await startNginx(new URL(stage.gateway.baseUrl).port, temp.path, { port, file });
        stack.defer(() => nginx.stop());
      };
      await recipe.follow({ before: [/^curl/, start] });
      await stage.arrival(customer, ({ text }) => text === "Hello from behind a proxy");
      assert.match(await Deno.readTextFile(recipe.at("Caddyfile")), /^hook\.test \{/m);
      for (const [kind, name] of [["nginx", "nginx.conf"], ["caddy", "Caddyfile"]] as const) {
        const shown = new RegExp("```" + kind + "\n([^]*?)```").exec(recipe.page.text)![1];
        assert.equal(shown, await Deno.readTextFile(join(ROOT, "ops", name)), `the page does not show ops/${name}`);
      }
    },
  },

  "recipes/monitoring": {
    needs: ["python3"],
    async follow({ stage, customer, open }) {
      const line = await stage.link(customer);
      await using recipe = await open({ fill: [["localhost:8080", new URL(stage.gateway.baseUrl).host]] });
      await recipe.follow();
      assert.match(recipe.output, /^all is well: \d+ lines connected$/m);
      for (
        const [saved, name] of [["alerts.yaml", "alerts.yaml"], ["dashboard.json", "grafana-dashboard.json"]] as const
      ) {
        assert.equal(await Deno.readTextFile(recipe.at(saved)), await Deno.readTextFile(join(ROOT, "ops", name)));
      }
      const { rule_files: rules, scrape_configs: [job] } = parse(await Deno.readTextFile(recipe.at("prometheus.yml")));
      assert.deepEqual([rules, job.job_name], [["alerts.yaml"], "paloma"]);
      const metrics = await fetch(`http://${job.static_configs[0].targets[0]}/metrics`);
      assert.match(await metrics.text(), /^paloma_lines\{status="connected"\} [1-9]/m);

      await stage.control.call("POST", "/faults", { line: customer, kind: "logout" });
      await stage.sessionStatus(line, "logged_out");
      const { code, printed } = await until(async () => {
        const checked = await recipe.type("python3 check.py http://localhost:8080");
        return checked.code === 0 ? null : checked;
      }, "the check to see it");
      assert.deepEqual([code, printed], [1, "lines logged_out: 1\n"]);
    },
  },

  "recipes/from-waha-or-evolution": {
    needs: ["python3"],
    async follow({ stage, customer, open }) {
      await using recipe = await open({ fill: [["Office", `'line ${LINE}'`]] });
      await recipe.follow();
      const inbox = await stage.inbox(customer);
      assert.deepEqual(inbox.map(({ text }) => text), ["We have moved", "This answers the first one"]);
      assert.equal(inbox[1].quoted.id, inbox[0].id);
      for (const line of [/^exists True$/m, /^sent$/m, /^out We have moved$/m]) assert.match(recipe.output, line);
    },
  },
};

/** Whether there is a program of this name. */
async function has(program: string): Promise<boolean> {
  const { code } = await tryProgram("/bin/bash", ["-c", `command -v ${program} || test -x /usr/sbin/${program}`], {
    PATH: Deno.env.get("PATH") ?? "",
  });
  return code === 0;
}

Deno.test("each recipe does its job, from an empty folder to the customer's phone", async (t) => {
  const pages = guides().map(({ path }) => path).filter((path) => /^docs\/(?:recipes\/|start\.md$)/.test(path));
  assert.deepEqual(Object.keys(RECIPES).map((name) => `docs/${name}.md`).sort(), pages.sort());
  const table: Record<string, { lines: number; seconds: string }> = {};
  await withStage(openStage, async (stage) => {
    await stage.linkLine(LINE);
    for (const [i, [name, { needs, follow }]] of Object.entries(RECIPES).entries()) {
      const missing: string[] = [];
      for (const program of needs) if (!await has(program)) missing.push(program);
      const customer = `4477009002${String(i).padStart(2, "0")}`;
      await t.step({
        name: missing.length > 0 ? `${name} (skipped: no ${missing.join(", ")})` : name,
        ignore: missing.length > 0,
        async fn() {
          await stage.addPhone(customer, "Ana");
          const began = performance.now();
          const path = `docs/${name}.md`;
          const open = ({ fill = [], ...options }: RecipeOptions = {}) =>
            Recipe.open(path, stage, { fill: [[CUSTOMER, customer], ...fill], ...options });
          await follow({ stage, customer, open });
          const files = filesOf(guides().find((page) => page.path === path)!);
          table[name] = {
            lines: files.reduce((lines, { content }) => lines + content.split("\n").length - 1, 0),
            seconds: ((performance.now() - began) / 1000).toFixed(1),
          };
        },
      });
    }
  });
  console.table(table);
});
