/** Long lists are held against their schema some items at a time. */
import assert from "node:assert/strict";
import { z } from "@hono/zod-openapi";
import { Problem } from "../../../../src/errors.ts";
import { validate, validateUnhurried } from "../../../../src/http/api/validation.ts";
import { testRuntime } from "../../../support/runtime.ts";

const MOST = 1_000;
let looks = 0;
const Item = z.strictObject({ to: z.string(), size: z.number().transform((size) => size + 1).optional() })
  .refine(() => ++looks);
const Body = z.strictObject({ name: z.string(), items: z.array(Item).min(1).max(MOST) });
const list = { name: "items", most: MOST };

/** What the schema makes of the value, or what it says against it. */
async function outcomeOf(validated: () => unknown): Promise<unknown> {
  try {
    return await validated();
  } catch (error) {
    assert(error instanceof Problem);
    return { detail: error.message, errors: error.extras.errors };
  }
}

const items = (count: number) => Array.from({ length: count }, (_, i): unknown => ({ to: String(i), size: i }));
const BODIES: Record<string, unknown> = {
  "of one item": { name: "a", items: items(1) },
  "of several pieces": { name: "a", items: items(450) },
  "with mistakes here and there": { name: 1, items: items(450).with(3, { to: 1 }).with(250, {}).with(449, "x") },
  "with another field that is not known": { name: "a", items: items(250), other: true },
  "with too many items": { name: "a", items: items(MOST + 1) },
  "without a list": { name: "a", items: { length: 500 } },
  "that is nothing": null,
};

for (const [what, body] of Object.entries(BODIES)) {
  Deno.test(`a body ${what} is validated in pieces as it is in one`, async () => {
    const { clock } = testRuntime();
    assert.deepEqual(
      await outcomeOf(() => validateUnhurried(Body, body, { list, clock })),
      await outcomeOf(() => validate(Body, body)),
    );
  });
}

Deno.test("once there are more mistakes than are told, no more of a long list is looked at", async () => {
  looks = 0;
  const body = { name: "a", items: items(900).fill({ size: "many" }, 100, 200) };
  await assert.rejects(validateUnhurried(Body, body, { list, clock: testRuntime().clock }), Problem);
  assert(looks <= 200, `${looks} items were looked at`);
});
