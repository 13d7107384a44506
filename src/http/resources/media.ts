/** Files of incoming messages, by signed link, which needs no key. */
import { z } from "@hono/zod-openapi";
import { type Api, routesOf } from "../api/route.ts";
import type { Services } from "../api/services.ts";

const routes = routesOf("Files", {
  getMedia: {
    at: "GET /media/{id}",
    summary: "Download a file",
    description: "The signed link is `data.media.url` of a `message.received` event and is valid for 24 hours. A " +
      "single byte `Range` is supported. An expired or invalid link returns 404.",
    access: "open",
    params: z.object({ id: z.string().max(100) }),
    query: z.object({
      expires: z.string().default("").describe("When the link expires, in Unix seconds."),
      signature: z.string().default(""),
    }),
    headers: z.object({
      "range": z.string().optional().openapi({ example: "bytes=0-1023" }),
      "if-range": z.string().optional().describe("The `etag` of a file that was partly downloaded."),
      "if-none-match": z.string().optional(),
    }),
    answers: {
      200: { description: "The file, with its own type", schema: null, contentType: "application/octet-stream" },
      206: { description: "The requested range", schema: null, contentType: "application/octet-stream" },
      304: { description: "The file matches `if-none-match`", schema: null },
    },
    problems: ["not_found", "range_not_satisfiable", "storage_unavailable"],
  },
});

export const mediaResource = { routes: Object.values(routes), add: addMedia };

function addMedia(api: Api, { serveMedia }: Services): void {
  api.onOpen(routes.getMedia, ({ c, params, query }) => {
    const method = c.req.method === "HEAD" ? "HEAD" : "GET";
    const header = (name: string) => c.req.header(name) ?? null;
    return serveMedia({
      fileId: params.id,
      ...query,
      method,
      range: header("range"),
      ifRange: header("if-range"),
      ifNoneMatch: header("if-none-match"),
    });
  });
}
