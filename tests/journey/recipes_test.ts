/**
 * How to start, and the recipes: each is followed from an empty folder on the simulated network, and judged by what the
 * phones hold. Ends with a table of how long each took and how many lines its programs have.
 */
import assert from "node:assert/strict";
import { freePort } from "../support/free_port.ts";
import { tryProgram } from "../support/gateway_process.ts";
import { guides } from "../support/guides.ts";
import { filesOf, Recipe, type RecipeOptions } from "../support/recipe.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";

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
  const pages = guides().map(({ path }) => path).filter((path) => path.startsWith("docs/recipes/"));
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
