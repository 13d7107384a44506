/** A bucket in this process that answers the S3 calls of `src/media/s3.ts`, and can break the n-th of them. */
import { Buffer } from "node:buffer";
import { ManualClock } from "../../tests/support/runtime.ts";
import type { Calls, Fault } from "./faults.ts";

/** As often as one call is tried: all of these fail. */
const TRIES = 3;
/** When uploads began: with the world. */
const BEGUN = new Date(new ManualClock().wall()).toISOString();
const NEVER = new Promise<never>(() => {});

export class BucketHere {
  readonly #objects = new Map<string, Uint8Array>();
  readonly #uploads = new Map<string, Map<number, Uint8Array>>();
  /** Of uploads. */
  readonly #names = new Map<string, string>();
  #next = 1;
  #broken: (answer: () => Promise<Response>) => Promise<Response> = (answer) => answer();

  /** Objects, and uploads that were neither finished nor given up. */
  get size(): number {
    return this.#objects.size + this.#uploads.size;
  }

  readonly fetch = async (request: Request): Promise<Response> => {
    const body = new Uint8Array(await request.arrayBuffer());
    return await this.#broken(() => Promise.resolve(this.#answer(request, body)));
  };

  /**
   * `unreachable`: the call, and what is tried again of it, does not get there. `unanswered`: it is done, and the answer
   * is lost. `torn`: so is the end of its body. `dies`: the process does, once it is done.
   */
  breaks(fault: Fault, n: number, die: () => void): Calls {
    let isDead = false;
    const calls: Calls = {
      count: 0,
      mend: () => void (this.#broken = (answer) => answer()),
      begin: () => void (isDead = false),
    };
    const lost = () => new TypeError(`call ${n} was broken`);
    this.#broken = async (answer) => {
      if (isDead) return await NEVER;
      const nth = ++calls.count;
      if (fault === "unreachable" && n > 0 && nth >= n && nth < n + TRIES) throw lost();
      const answered = await answer();
      if (nth !== n || fault === "unreachable") return answered;
      if (fault === "torn") {
        return new Response(new ReadableStream({ pull: (body) => body.error(lost()) }), answered);
      }
      if (fault === "dies") {
        isDead = true;
        die();
      }
      throw lost();
    };
    return calls;
  }

  #answer({ method, url }: Request, body: Uint8Array): Response {
    const { pathname: name, searchParams: query } = new URL(url);
    const uploadId = query.get("uploadId");
    const upload = this.#uploads.get(uploadId ?? "");
    if (uploadId !== null && !upload) return new Response("<Error><Code>NoSuchUpload</Code></Error>", { status: 404 });
    switch (method) {
      case "POST":
        if (!upload) {
          this.#uploads.set(String(this.#next), new Map());
          this.#names.set(String(this.#next), name);
          return new Response(`<UploadId>${this.#next++}</UploadId>`);
        }
        this.#objects.set(name, Buffer.concat([...upload].sort(([a], [b]) => a - b).map(([, part]) => part)));
        this.#uploads.delete(uploadId!);
        return new Response("<CompleteMultipartUploadResult/>");
      case "PUT":
        if (upload) upload.set(Number(query.get("partNumber")), body);
        else this.#objects.set(name, body);
        return new Response(null, { headers: { etag: '"1"' } });
      case "DELETE":
        if (upload) this.#uploads.delete(uploadId!);
        else this.#objects.delete(name);
        return new Response(null, { status: 204 });
    }
    if (method === "GET" && query.has("uploads")) {
      const keyOf = (id: string) => this.#names.get(id)!.split("/").at(-1);
      return new Response(
        [...this.#uploads.keys()].map((id) =>
          `<Upload><Key>${keyOf(id)}</Key><UploadId>${id}</UploadId><Initiated>${BEGUN}</Initiated></Upload>`
        ).join(""),
      );
    }
    const object = this.#objects.get(name);
    return new Response(method === "HEAD" ? null : object as BodyInit ?? "", { status: object ? 200 : 404 });
  }
}
