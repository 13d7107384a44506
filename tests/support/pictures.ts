/** A site of pages that each name a hostile file as their picture, whatever that file is. */
import { createServer } from "node:http";
import { listenOn } from "../../src/base/listening.ts";
import type { HostileFile } from "./hostile_corpus.ts";

export interface Pictures {
  /** `/page/{n}` below it names the file with that place in the list. */
  readonly url: string;
  close(): void;
}

export async function startPictures(files: readonly HostileFile[]): Promise<Pictures> {
  const server = createServer((request, response) => {
    const [, what, number] = request.url!.split("/");
    if (what === "page") {
      response.setHeader("content-type", "text/html");
      response.end(`<title>A page</title><meta property="og:image" content="/picture/${number}">`);
    } else {
      response.setHeader("content-type", "image/png");
      response.end(files[Number(number)]?.bytes);
    }
  });
  const port = await listenOn(server);
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
