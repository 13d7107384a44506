import type {
  IDataObject,
  IExecuteFunctions,
  IHookFunctions,
  IHttpRequestMethods,
  ILoadOptionsFunctions,
  IWebhookFunctions,
  JsonObject,
} from "n8n-workflow";
import { jsonParse, NodeApiError } from "n8n-workflow";

export type Context = IExecuteFunctions | IHookFunctions | ILoadOptionsFunctions | IWebhookFunctions;

export interface Call {
  method: IHttpRequestMethods;
  /** Below the base URL, such as `/v1/account`. */
  path: string;
  qs?: IDataObject;
  body?: IDataObject | FormData;
  /** A repetition with the same key and body is answered as the first one was. */
  idempotencyKey?: string;
  /** Statuses that are no error. */
  allow?: number[];
  /** The answer is a file. */
  isFile?: boolean;
}

export interface Answer {
  headers: Record<string, string>;
  body: IDataObject;
}

interface Problem extends IDataObject {
  title?: string;
  detail?: string;
  code?: string;
  errors?: { path: string; message: string }[];
}

/** Calls the gateway; throws a `NodeApiError` with the words of its problem document. */
export async function call(context: Context, request: Call, itemIndex = 0): Promise<Answer> {
  const { baseUrl } = await context.getCredentials<{ baseUrl: string }>("palomaApi");
  const { statusCode, headers, body } = await context.helpers.httpRequestWithAuthentication.call(context, "palomaApi", {
    method: request.method,
    url: baseUrl.replace(/\/+$/, "") + request.path,
    qs: request.qs,
    body: request.body as IDataObject,
    json: !(request.body instanceof FormData),
    headers: request.idempotencyKey ? { "idempotency-key": request.idempotencyKey } : {},
    ...(request.isFile && { encoding: "arraybuffer" as const }),
    ignoreHttpStatusErrors: true,
    returnFullResponse: true,
  });
  if (statusCode < 300 || request.allow?.includes(statusCode)) return { headers, body };

  const isParsed = typeof body === "object" && !Buffer.isBuffer(body);
  const problem: Problem = isParsed ? body : jsonParse(String(body), { fallbackValue: { detail: String(body) } });
  const faults = (problem.errors ?? []).map(({ path, message }) => `${path}: ${message}`);
  throw new NodeApiError(context.getNode(), problem as JsonObject, {
    message: problem.detail ?? problem.title ?? `The gateway answered with ${statusCode}`,
    description: [...faults, problem.code].filter(Boolean).join("\n"),
    httpCode: String(statusCode),
    itemIndex,
  });
}

/** All pages of a list, or as many items as `limit` asks for. `cursor` names the parameter that takes `next`. */
export async function pages(context: Context, path: string, qs: IDataObject, cursor: string, limit: number) {
  const items: IDataObject[] = [];
  for (let next: string | null | undefined; next !== null && items.length < limit;) {
    const size = Math.min(100, limit - items.length);
    const { body } = await call(context, { method: "GET", path, qs: { ...qs, limit: size, [cursor]: next } });
    items.push(...body.data as IDataObject[]);
    next = body.next as string | null;
  }
  return items;
}
