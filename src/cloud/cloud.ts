/**
 * `/cloud`: the shape of WhatsApp's Cloud API, with any version in the path. It maps onto routes of the API, which it
 * calls with the caller's own key, so that scopes, quotas, limits and refusals are the API's.
 */
import type { Hono } from "@hono/hono";
import type { Caller } from "../account/account.ts";
import { Problem, type ProblemCode } from "../errors.ts";
import { answerJson, problemOf } from "../http/api/answer.ts";
import { headersOnBehalf } from "../http/api/on_behalf.ts";
import type { ApiContext, ApiEnv } from "../http/api/route.ts";
import type { Services } from "../http/api/services.ts";
import { MIB, parseJson, readBytes } from "../http/body/body.ts";
import { makeAuth, makeClientAddress } from "../http/edge/auth.ts";
import type { Line } from "../line/line.ts";
import { CloudError, errorBody, ofProblem, wrongParameter } from "./errors.ts";
import { type Fields, sendOf, withoutNull } from "./messages.ts";

const JSON_HEADERS = { "content-type": "application/json", "cache-control": "no-store" };
const SUCCESS = { success: true };

/** A problem document that the API answered with. */
class Refused extends Error {
  constructor(readonly error: ReturnType<typeof ofProblem>, readonly retryAfter: string | null) {
    super(error.detail);
  }
}

export function addCloud(
  app: Hono<ApiEnv>,
  { callers, keys, lines, references, trustedProxies, runtime: { clock } }: Pick<
    Services,
    "callers" | "keys" | "lines" | "references" | "trustedProxies" | "runtime"
  >,
): void {
  const auth = makeAuth({ callers, keys, clock, clientAddress: makeClientAddress(trustedProxies) });

  /** Calls a route of the API. Throws Refused. */
  async function call(c: ApiContext, method: string, path: string, body: Fields): Promise<Fields> {
    const request = new Request(`http://cloud${path}`, {
      method,
      headers: headersOnBehalf(c),
      body: JSON.stringify(body),
    });
    const response = await app.fetch(request, { incoming: c.env?.incoming } as never);
    const answer = await response.json();
    if (response.ok) return answer;
    const problem = answer as { code: ProblemCode; status: number; detail: string };
    throw new Refused(ofProblem(problem, path.endsWith("/template")), response.headers.get("retry-after"));
  }

  /** Returns the line that the id of a phone number names. Throws CloudError. */
  async function lineOf(caller: Caller, phone: string): Promise<Line> {
    const all = await lines.list(caller.account.id);
    const found = all.find(({ id, phone: digits }) => id === phone || digits === phone);
    if (!found) throw new CloudError(100, "There is no phone number with this id.", 404);
    return found;
  }

  async function postMessage(c: ApiContext, caller: Caller, line: Line): Promise<Fields> {
    const message = await bodyOf(c);
    if (message.status !== undefined) return await markRead(c, { caller, line, message });
    const { route, to, body } = sendOf(message);
    const { messageId: id } = await call(c, "POST", `/v1/messages/send/${route}`, { sessionId: line.id, ...body });
    const wa_id = to.includes("@") ? to : to.replaceAll(/\D/g, "");
    return {
      messaging_product: "whatsapp",
      contacts: [{ input: to, wa_id }],
      messages: [{ id, message_status: "accepted" }],
    };
  }

  async function markRead(
    c: ApiContext,
    { caller, line, message }: { caller: Caller; line: Line; message: Fields },
  ): Promise<Fields> {
    const { status, message_id: messageId, typing_indicator } = message;
    if (status !== "read" || typeof messageId !== "string") {
      throw wrongParameter("status must be read, with a message_id");
    }
    const { chat } = await references.find(caller.account.id, messageId, { sessionId: line.id });
    const path = `/v1/sessions/${line.id}/chats/${encodeURIComponent(chat)}`;
    await call(c, "POST", `${path}/read`, { messageId });
    if (typing_indicator !== undefined) await call(c, "POST", `${path}/presence`, { state: "typing" });
    return SUCCESS;
  }

  async function answer(c: ApiContext): Promise<Fields> {
    const caller = await auth.authenticate(c, "bearer");
    c.set("caller", caller);
    const [, id = "", edge = "", ...more] = c.req.path.replace(/^\/cloud(\/v\d+(\.\d+)?(?=\/))?/, "").split("/");
    const asked = `${c.req.method} ${[edge, ...more].join("/")}`;
    if (asked === "GET " && id === "debug_token") {
      return { data: { is_valid: true, type: "SYSTEM_USER", app_id: caller.account.id, expires_at: 0 } };
    }
    if (asked === "GET phone_numbers") {
      const all = await readable(caller);
      if (id !== caller.account.id && !all.some(({ phone }) => phone === id)) {
        throw new CloudError(100, "There is no business account with this id.", 404);
      }
      return { data: all.filter(({ phone }) => phone !== null).map(phoneNumberOf) };
    }
    const line = await lineOf(caller, id);
    if (asked === "GET ") return await readable(caller).then(() => phoneNumberOf(line));
    if (asked === "POST messages") return await postMessage(c, caller, line);
    if (asked === "POST register" || asked === "POST deregister") return SUCCESS;
    throw new CloudError(100, "This path and method are not supported.", 404);
  }

  async function readable(caller: Caller): Promise<Line[]> {
    if (caller.key && !caller.key.scopes.includes("read")) throw new Problem("scope_missing", "The key lacks read.");
    return await lines.list(caller.account.id);
  }

  app.all("/cloud/*", async (given: ApiContext) => {
    const c = given;
    c.set("route", "/cloud");
    const token = c.req.query("access_token");
    if (token && !c.req.header("authorization")) c.req.raw.headers.set("authorization", `Bearer ${token}`);
    try {
      return answerJson(c, { status: 200, body: await answer(c), headers: JSON_HEADERS });
    } catch (error) {
      const { retryAfter, ...refusal } = refusalOf(error);
      if (refusal.status >= 500) c.set("failure", error);
      const headers = retryAfter === null ? JSON_HEADERS : { ...JSON_HEADERS, "retry-after": retryAfter };
      return answerJson(c, { status: refusal.status, body: errorBody(refusal, c.get("requestId")), headers });
    }
  });
}

async function bodyOf(c: ApiContext): Promise<Fields> {
  const body = withoutNull(parseJson(await readBytes(c.req.raw, { maxBytes: MIB })));
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw wrongParameter("the body must be an object");
  }
  return body as Fields;
}

function refusalOf(error: unknown): ReturnType<typeof ofProblem> & { retryAfter: string | null } {
  if (error instanceof Refused) return { ...error.error, retryAfter: error.retryAfter };
  if (error instanceof CloudError) {
    return { code: error.code, status: error.status, detail: error.message, retryAfter: null };
  }
  const { code, status, message: detail, extras } = problemOf(error);
  const seconds = extras.retryAfterSeconds;
  return { ...ofProblem({ code, status, detail }), retryAfter: seconds === undefined ? null : String(seconds) };
}

function phoneNumberOf({ id, phone, name }: Line): Fields {
  return {
    id: phone ?? id,
    display_phone_number: phone === null ? "" : `+${phone}`,
    verified_name: name,
    quality_rating: "UNKNOWN",
    platform_type: "CLOUD_API",
    code_verification_status: "VERIFIED",
    throughput: { level: "STANDARD" },
  };
}
