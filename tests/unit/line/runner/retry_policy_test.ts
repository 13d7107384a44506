import assert from "node:assert/strict";
import {
  survivesCrash,
  TROUBLE_PAUSE_MS,
  UNACKNOWLEDGED,
  verdictOn,
} from "../../../../src/line/runner/retry_policy.ts";

const each = (outcome: Parameters<typeof verdictOn>[0]) => [1, 2, 3].map((attempts) => verdictOn(outcome, attempts));

Deno.test("a refusal is final at the first attempt, and says what the network said", () => {
  const error = { code: "number_not_registered", message: "No account has this number." };
  const [first] = each({ kind: "refused", code: error.code, detail: error.message });
  assert.deepEqual(first, { kind: "fails", error, restMs: 0 });
});

Deno.test("silence and passing trouble are met twice with another attempt, and end the message the third time", () => {
  const again = { kind: "goes_again", restMs: 0 };
  assert.deepEqual(each({ kind: "unknown", detail: "silence" }), [
    again,
    again,
    { kind: "fails", error: UNACKNOWLEDGED, restMs: 0 },
  ]);
  const [first, second, third] = each({ kind: "retry", detail: "the upload failed" });
  assert.deepEqual([first, second], [{ ...again, restMs: 2_000 }, { ...again, restMs: 8_000 }]);
  assert.ok(third?.kind === "fails" && third.error.code === "send_failed");
  assert.match(third.error.message, /3 attempts: the upload failed/);
});

Deno.test("what is held or restricted waits however often it was tried; only where the network was asked the pause follows", () => {
  for (const attempts of [1, 3, 30]) {
    assert.deepEqual(verdictOn({ kind: "restricted", detail: "" }, attempts), {
      kind: "waits",
      error: { code: "account_restricted", message: "" },
      restMs: 0,
    });
    assert.deepEqual(verdictOn({ kind: "hold", detail: "" }, attempts), {
      kind: "waits",
      error: null,
      restMs: TROUBLE_PAUSE_MS,
    });
  }
});

Deno.test("a message in whose company ten processes died goes no more", () => {
  assert.deepEqual([1, 9, 10].map(survivesCrash), [true, true, false]);
});
