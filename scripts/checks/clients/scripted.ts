/** Answers that a gateway gives only when it is busy, or after a month. The path begins with the script and a name of the test's. */

export interface Scripted extends AsyncDisposable {
  readonly url: string;
}

type Script = (keys: string[]) => Response;

const problem = (status: number, code: string, retryAfter: number) =>
  Response.json({ type: "about:blank", title: code, status, code, requestId: "req_1" }, {
    status,
    headers: { "content-type": "application/problem+json", "retry-after": String(retryAfter) },
  });

const SCRIPTS: Record<string, Script> = {
  gap: () => Response.json({ data: [], next: null, gap: true }),
  busy: (keys) => keys.length === 1 ? problem(503, "busy", 1) : Response.json({ keys }),
  quota: () => problem(429, "quota_exceeded", 7_200),
};

/** `keys` in an answer: the Idempotency-Key of each request so far. */
export function startScripted(): Scripted {
  const keys: Record<string, string[]> = {};
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    await request.arrayBuffer();
    const [, script, test] = new URL(request.url).pathname.split("/");
    const own = keys[`${script}/${test}`] ??= [];
    own.push(request.headers.get("idempotency-key") ?? "");
    return SCRIPTS[script!]!(own);
  });
  return { url: `http://127.0.0.1:${server.addr.port}`, [Symbol.asyncDispose]: () => server.shutdown() };
}
