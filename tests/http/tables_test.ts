/** Every table of requests and answers, on the API in this process. */
import { runTable } from "../support/api_table.ts";
import { withApi } from "../support/api_world.ts";
import { TABLES } from "./tables/all.ts";

for (const [name, cases] of Object.entries(TABLES)) {
  Deno.test(`the API answers as its reference says: ${name}`, (t) =>
    withApi(async (stage) => {
      const session = await stage.linkedSession();
      await runTable(t, { stage, session }, cases);
    }));
}
