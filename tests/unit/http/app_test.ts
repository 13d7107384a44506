import assert from "node:assert/strict";
import { z } from "@hono/zod-openapi";
import { PathIndex } from "../../../src/http/app.ts";

Deno.test("a path has the methods of every route that it fits, or else of those that refuse its parameters", () => {
  const paths = new PathIndex();
  paths.add("GET", "/a/{id}");
  paths.add("DELETE", "/a/{id}", z.object({ id: z.string().regex(/^\d+$/) }));
  paths.add("POST", "/a/list");
  paths.add("PUT", "/b/{id}", z.object({ id: z.string().regex(/^\d+$/) }));
  paths.add("GET", "/openapi.json");
  const rows: [string, string[]][] = [
    ["/a/1", ["DELETE", "GET", "HEAD"]],
    ["/a/list", ["GET", "HEAD", "POST"]],
    ["/b/none", ["PUT"]],
    ["/a", []],
    ["/a/1/b", []],
    ["/a/", []],
    ["/openapiXjson", []],
    ["/openapi.json", ["GET", "HEAD"]],
  ];
  for (const [path, methods] of rows) assert.deepEqual(paths.methodsOf(path), methods, path);
});
