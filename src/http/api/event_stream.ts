/** Answers that are streams of server-sent events: each takes a place for as long as it is open. */
import type { Taken } from "../edge/budgets.ts";
import type { ApiContext } from "./context.ts";

const HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

/**
 * The answer that streams what `open` makes; the stream leaves the place at its end. One too many is refused before
 * anything is opened for it, and throws what `open` throws. HEAD takes no place: nobody reads its answer, or closes it.
 */
export async function streamAnswer(
  c: ApiContext,
  place: Taken,
  open: () => Promise<ReadableStream<Uint8Array>>,
): Promise<Response> {
  if (c.req.method === "HEAD") return c.body(null, 200, HEADERS);
  place.add(1);
  try {
    return c.body(await open(), 200, HEADERS);
  } catch (error) {
    place[Symbol.dispose]();
    throw error;
  }
}
