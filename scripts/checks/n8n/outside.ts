/** What is on the internet elsewhere: a language model, the incoming webhook of a chat, and a door that loses answers. */

// deno-lint-ignore no-explicit-any
type Json = any;

/** What the model answers, whatever it is asked. */
export const DRAFT = "Yes, it left this morning.";

const LOOPBACK = { hostname: "127.0.0.1", port: 0, onListen: () => {} };

export interface Outside {
  model: string;
  incoming: string;
  /** What was posted to the incoming webhook. */
  posted: Json[];
  end(): Promise<void>;
}

export function startOutside(): Outside {
  const posted: Json[] = [];
  const server = Deno.serve(LOOPBACK, async (request) => {
    const body = await request.json();
    if (request.url.endsWith("/incoming")) {
      posted.push(body);
      return new Response("ok");
    }
    const message = { role: "assistant", content: DRAFT };
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    const choices = [{ index: 0, message, finish_reason: "stop" }];
    return Response.json({ id: "1", object: "chat.completion", created: 0, model: body.model, choices, usage });
  });
  const url = `http://127.0.0.1:${server.addr.port}`;
  return { model: url, incoming: `${url}/incoming`, posted, end: () => server.shutdown() };
}

export interface Door {
  url: string;
  /** How many answers were lost. */
  readonly lost: number;
  end(): Promise<void>;
}

/** A way to the gateway that loses the answer to the first request with this text in it: 502, though it was served. */
export function openDoor(gateway: string, text: string): Door {
  let lost = 0;
  const server = Deno.serve(LOOPBACK, async (request) => {
    const { pathname, search } = new URL(request.url);
    const body = new Uint8Array(await request.arrayBuffer());
    const { method, headers } = request;
    const answer = await fetch(gateway + pathname + search, { method, headers, body: body.length ? body : null });
    if (lost === 0 && new TextDecoder().decode(body).includes(text)) {
      lost++;
      await answer.body?.cancel();
      return new Response(null, { status: 502 });
    }
    return answer;
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    get lost() {
      return lost;
    },
    end: () => server.shutdown(),
  };
}
