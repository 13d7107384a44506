/** Requests to a staged gateway whose refusals matter as much as what is accepted. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import type { RunningGateway } from "./gateway_process.ts";
import type { Stage } from "./stage.ts";

export interface ApiAnswer {
  status: number;
  headers: Headers;
  body: Json;
}

type AnyStage = Pick<Stage<RunningGateway>, "request" | "secrets">;

/** Posts JSON with the stage's key, unless other headers are given. */
export function post(
  stage: AnyStage,
  path: string,
  { json, headers = {} }: { json: unknown; headers?: Record<string, string> },
): Promise<ApiAnswer> {
  stage.secrets.read(json);
  const init = { headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(json) };
  return answerOf(stage.request("POST", path, init));
}

export async function answerOf(request: Promise<Response>): Promise<ApiAnswer> {
  const response = await request;
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === "" ? null : JSON.parse(text) };
}

/** The assertion of a passkey: of the right form, and signed by nobody. */
export const ASSERTION = {
  id: "AAAA",
  rawId: "AAAA",
  type: "public-key",
  response: {
    clientDataJSON: btoa(JSON.stringify({ type: "webauthn.get", challenge: "AAAA" })).replaceAll("=", ""),
    authenticatorData: "AAAA",
    signature: "AAAA",
  },
  clientExtensionResults: {},
};

/** The body of a 202. */
export async function accepted(answer: Promise<ApiAnswer>): Promise<Json> {
  const { status, body } = await answer;
  assert.equal(status, 202, JSON.stringify(body));
  return body;
}

/** Fails unless the answer is this problem; resolves to it. */
export async function refused(answer: Promise<ApiAnswer>, status: number, code: string): Promise<ApiAnswer> {
  const given = await answer;
  assert.deepEqual([given.status, given.body.code], [status, code], JSON.stringify(given.body));
  assert.equal(given.headers.get("content-type"), "application/problem+json");
  return given;
}
