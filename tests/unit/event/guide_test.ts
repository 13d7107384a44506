/** The guide to events leaves none out. */
import assert from "node:assert/strict";
import { EVENT_NAMES } from "../../../src/event/event.ts";
import { EVENT_SCHEMAS } from "../../../src/event/schema.ts";
import { INCOMING_TYPES } from "../../../src/whatsapp/incoming.ts";

const GUIDE = Deno.readTextFileSync(new URL("../../../docs/events.md", import.meta.url));

Deno.test("every event has a schema, and every schema is of an event", () => {
  assert.deepEqual(Object.keys(EVENT_SCHEMAS).sort(), EVENT_NAMES.toSorted());
});

Deno.test("the guide names every event, every field of its data, and every type of message", () => {
  for (const name of EVENT_NAMES) {
    assert.ok(GUIDE.includes(`\`${name}\``), name);
    const fields = Object.keys(EVENT_SCHEMAS[name].data.shape);
    assert.ok(fields.length > 0);
    for (const field of fields) assert.match(GUIDE, new RegExp(`\\b${field}\\b`), `${field} of ${name}`);
  }
  for (const type of INCOMING_TYPES) assert.ok(GUIDE.includes(`\`${type}\``), type);
});
