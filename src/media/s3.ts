/** The S3 calls needed for files, on any compatible server; `aws4fetch` signs the requests. */
import { createHash } from "node:crypto";
import { AwsClient } from "aws4fetch";
import type { BucketConfig } from "../config.ts";
import { retry } from "../base/retry.ts";
import { timeLimit, within } from "../base/within.ts";
import type { Clock } from "../runtime.ts";
import { StoreError } from "../store/kv.ts";

/** Time limit until the response head arrives, including the upload of a part of 8 MiB, and then for each chunk. */
const ANSWER_MS = 30_000;
/** Every call can be retried; `finish` checks what an earlier attempt has done. */
const RETRY_PAUSES_MS = [200, 1_000];

export interface UploadedPart {
  number: number;
  etag: string;
}

interface UnfinishedUpload {
  name: string;
  uploadId: string;
  /** Unix ms. */
  begunAt: number;
}

export type Bucket = ReturnType<typeof openBucket>;

/** All methods throw StoreError if the server fails or does not answer. `http` makes the requests. */
export function openBucket(
  config: BucketConfig,
  { clock, http = fetch }: { clock: Clock; http?: (request: Request, init: RequestInit) => Promise<Response> },
) {
  const { accessKeyId, secretAccessKey, sessionToken, region } = config;
  const client = new AwsClient({
    accessKeyId,
    secretAccessKey,
    region,
    service: "s3",
    ...(sessionToken === null ? {} : { sessionToken }),
  });
  const base = config.endpoint === null
    ? `https://${config.bucket}.s3.${region}.amazonaws.com`
    : `${config.endpoint}/${config.bucket}`;
  const urlOf = (name: string, query = "") => `${base}/${config.prefix}${name}${query && `?${query}`}`;

  /** Makes a call and reads the answer; any status other than `statuses` is a failure. */
  async function call<T>(
    method: string,
    url: string,
    { body, headers = {}, statuses }: Call,
    read: (answer: Response) => Promise<T>,
  ): Promise<T> {
    const sha256 = createHash("sha256").update(body ?? "").digest("hex");
    const attempt = async () => {
      using limit = timeLimit(clock, ANSWER_MS);
      const init = { method, headers: { ...headers, "x-amz-content-sha256": sha256 }, ...(body ? { body } : {}) };
      const request = await client.sign(url, init);
      const answer = await http(request, { signal: limit.signal, redirect: "manual" });
      if (statuses.includes(answer.status)) return await read(answer);
      throw new BucketError(answer.status, await answer.text());
    };
    try {
      return await retry(attempt, { clock, pauseMs: RETRY_PAUSES_MS, isTransient });
    } catch (cause) {
      throw unusable(cause);
    }
  }

  /** Makes a call and resolves to the head of the answer. */
  function done(method: string, url: string, options: Call): Promise<Response> {
    return call(method, url, options, async (answer) => {
      await answer.body?.cancel();
      return answer;
    });
  }

  return {
    async put(name: string, body: Uint8Array<ArrayBuffer>): Promise<void> {
      await done("PUT", urlOf(name), { body, statuses: [200] });
    },

    /** Reads an object, or a part of at least one byte; null if there is no such object. */
    async get(name: string, part?: { start: number; length: number }) {
      const headers = part && { range: `bytes=${part.start}-${part.start + part.length - 1}` };
      return await call("GET", urlOf(name), { headers, statuses: [part ? 206 : 200, 404] }, async (answer) => {
        if (answer.status !== 404) return answer.body && flowing(answer.body, clock);
        await answer.body?.cancel();
        return null;
      });
    },

    /** Deletes an object; a missing one is not an error. */
    async delete(name: string): Promise<void> {
      await done("DELETE", urlOf(name), { statuses: [200, 204, 404] });
    },

    /** Begins an upload in parts of at least 5 MiB, except the last; resolves to the upload's id. */
    async begin(name: string): Promise<string> {
      const text = await call("POST", urlOf(name, "uploads="), { statuses: [200] }, (answer) => answer.text());
      const id = inside(text, UPLOAD_ID);
      if (id === "") throw new StoreError("unavailable", "the bucket began no upload");
      return id;
    },

    async part(
      name: string,
      uploadId: string,
      { number, bytes }: { number: number; bytes: Uint8Array<ArrayBuffer> },
    ): Promise<UploadedPart> {
      const query = `partNumber=${number}&uploadId=${encodeURIComponent(uploadId)}`;
      const answer = await done("PUT", urlOf(name, query), { body: bytes, statuses: [200] });
      return { number, etag: answer.headers.get("etag") ?? "" };
    },

    async finish(name: string, uploadId: string, parts: readonly UploadedPart[]): Promise<void> {
      const list = parts.map(({ number, etag }) =>
        `<Part><PartNumber>${number}</PartNumber><ETag>${etag}</ETag></Part>`
      );
      const body = `<CompleteMultipartUpload>${list.join("")}</CompleteMultipartUpload>`;
      const query = `uploadId=${encodeURIComponent(uploadId)}`;
      const isDone = await call("POST", urlOf(name, query), { body, statuses: [200, 404] }, async (answer) => {
        // A response with status 200 may still contain an error.
        const text = await answer.text();
        return answer.status === 200 && !/<Error>/.test(text);
      });
      // If the answer to an attempt was lost, the next one finds no such upload, but the object is there.
      if (isDone || (await done("HEAD", urlOf(name), { statuses: [200, 404] })).status === 200) return;
      throw new StoreError("unavailable", "the bucket could not put an upload together");
    },

    /** Lists uploads in parts, at most a thousand, that were neither finished nor aborted; none if the key may not. */
    async unfinished(): Promise<UnfinishedUpload[]> {
      const url = `${base}/?prefix=${encodeURIComponent(config.prefix)}&uploads=`;
      const text = await call("GET", url, { statuses: [200, 403, 405, 501] }, (answer) => answer.text());
      return text.split("<Upload>").slice(1).map((upload) => ({
        name: inside(upload, /<Key>([^<]+)<\/Key>/).slice(config.prefix.length),
        uploadId: inside(upload, UPLOAD_ID),
        begunAt: Date.parse(inside(upload, /<Initiated>([^<]+)<\/Initiated>/)),
      }));
    },

    /** Aborts an upload and removes its parts; a missing upload is not an error. */
    async abort(name: string, uploadId: string): Promise<void> {
      const query = `uploadId=${encodeURIComponent(uploadId)}`;
      await done("DELETE", urlOf(name, query), { statuses: [200, 204, 404] });
    },
  };
}

/** Returns the same content, which errors with StoreError if it breaks off or stands still. */
function flowing(content: ReadableStream<Uint8Array<ArrayBuffer>>, clock: Clock): typeof content {
  const reader = content.getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const read = await within(clock, ANSWER_MS, reader.read());
        if (read === "late") throw new Error("it stopped in the middle of a file");
        if (read.done) controller.close();
        else controller.enqueue(read.value);
      } catch (cause) {
        await reader.cancel().catch(() => {});
        throw unusable(cause);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  }, { highWaterMark: 0 });
}

const UPLOAD_ID = /<UploadId>([^<]+)<\/UploadId>/;

/** Returns what the first such element holds; empty if there is none. */
function inside(text: string, element: RegExp): string {
  return element.exec(text)?.[1] ?? "";
}

interface Call {
  body?: Uint8Array<ArrayBuffer> | string;
  headers?: Record<string, string> | undefined;
  statuses: readonly number[];
}

function unusable(cause: unknown): StoreError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new StoreError("unavailable", `the bucket cannot be used: ${reason}`, { cause });
}

/** An error response of the server; its text describes the fault and contains none of our keys. */
class BucketError extends Error {
  constructor(readonly status: number, text: string) {
    const code = inside(text, /<Code>([^<]{1,80})<\/Code>/);
    super(code ? `${status} ${code}` : String(status));
  }
}

/** Whether a retry may help: the server is busy or did not answer. A refusal is final. */
function isTransient(error: unknown): boolean {
  return !(error instanceof BucketError) || error.status >= 500 || error.status === 429;
}
