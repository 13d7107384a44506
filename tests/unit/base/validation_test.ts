/** Long lists are held against their schema some items at a time. */
import assert from "node:assert/strict";
import { z } from "@hono/zod-openapi";
import { Problem } from "../../../src/errors.ts";
import { validate, validateInPieces } from "../../../src/base/validation.ts";
import { testRuntime } from "../../support/runtime.ts";

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
      await outcomeOf(() => validateInPieces(Body, body, { list, clock })),
      await outcomeOf(() => validate(Body, body)),
    );
  });
}

Deno.test("once there are more mistakes than are reported, no more of a long list is looked at", async () => {
  looks = 0;
  const body = { name: "a", items: items(900).fill({ size: "many" }, 100, 200) };
  await assert.rejects(validateInPieces(Body, body, { list, clock: testRuntime().clock }), Problem);
  assert(looks <= 200, `${looks} items were looked at`);
});

const mistakes: [z.ZodType, unknown, string][] = [
  [z.string(), undefined, "is required"],
  [z.string(), null, "is required"],
  [z.string(), 1, "must be a text"],
  [z.boolean(), "yes", "must be true or false"],
  [z.int(), 1.5, "must be a whole number"],
  [z.array(z.string()), "a", "must be a list"],
  [z.strictObject({}), [], "must be an object"],
  [z.enum(["high", "low"]), "urgent", "must be one of high, low"],
  [z.string().min(1), "", "is empty"],
  [z.string().max(100), "a".repeat(101), "has more than 100 characters"],
  [z.array(z.string()).min(2), ["a"], "must have at least 2 items"],
  [z.array(z.string()).max(1_000), Array(1_001).fill("a"), "has more than 1,000 items"],
  [z.number().min(0), -1, "must be at least 0"],
  [z.number().max(90), 91, "must be at most 90"],
  [z.iso.date(), "22-11-2026", "must be a day, like 2026-01-15"],
  [z.iso.datetime({ offset: true }), "2026-11-23T10:00:00", "must be a time with its zone, like 2026-01-15T12:00:00Z"],
  [z.string().regex(/^a$/, "is no a"), "b", "is no a"],
];
Deno.test("what a schema has no words for is reported in the API's words", async () => {
  for (const [schema, value, message] of mistakes) {
    assert.deepEqual(await outcomeOf(() => validate(z.strictObject({ field: schema }), { field: value })), {
      detail: `field: ${message}`,
      errors: [{ path: "field", message }],
    });
  }
});
