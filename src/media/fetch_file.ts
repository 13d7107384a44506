/** Fetches files from user-given addresses (`fileUrl`) through `egress/` into the media store. */
import { percentDecoded } from "../base/addresses.ts";
import { extensionFor } from "../base/file_types.ts";
import { decodedParameter, parametersOf, Undecodable } from "../base/header_parameters.ts";
import { EgressError } from "../egress/egress_error.ts";
import type { SafeFetch, SafeResponse } from "../egress/safe_fetch.ts";
import { invalid, Problem } from "../errors.ts";
import { safeFilename, safeMimetype } from "./filename.ts";
import type { StoredFile } from "./store.ts";
import type { SharedMediaStore } from "./fair_shares.ts";

/** The address's place in the request, for validation errors. */
const PATH = "fileUrl";
/** The same limit as for an upload. */
const FETCH_MAX_BYTES = 100 * 1024 ** 2;
/** Time limit for the whole file, redirects included. */
const FETCH_TIMEOUT_MS = 60_000;
const MAX_REDIRECTS = 5;
/** Statuses after which a retry may succeed. */
const PASSING_STATUSES = new Set([408, 425, 429, 500, 502, 503, 504]);

/**
 * Returns a function that fetches a file and writes it to the media store on behalf of the account, without a row: the
 * caller either keeps it in its own commit or removes it. Throws Problem validation_failed if the address is forbidden
 * or yields no file (with the EgressError, if any, as its cause), and payload_too_large.
 */
export function makeFetchFile({ safeFetch, media }: { safeFetch: SafeFetch; media: SharedMediaStore }) {
  return async (
    url: string,
    { accountId, signal }: { accountId: string; signal?: AbortSignal },
  ): Promise<{ file: StoredFile; filename: string; mimetype: string }> => {
    media.assertPlace();
    try {
      const response = await safeFetch.fetch({
        url,
        method: "GET",
        schemes: ["https:", "http:"],
        maxRedirects: MAX_REDIRECTS,
        timeoutMs: FETCH_TIMEOUT_MS,
        maxBytes: FETCH_MAX_BYTES,
        signal,
      });
      if (response.status !== 200) {
        await response.body.cancel();
        const answered = `the address answered ${response.status} instead of a file`;
        if (PASSING_STATUSES.has(response.status)) throw new EgressError("unreachable", answered);
        throw invalid(PATH, answered);
      }
      const body = await decoded(response);
      const file = await media.write(body, { accountId, maxBytes: FETCH_MAX_BYTES });
      if (file.size === 0) {
        await media.remove(file.fileId);
        throw invalid(PATH, "the file at the address is empty");
      }
      const mimetype = safeMimetype(response.headers.get("content-type") ?? "");
      return { file, filename: filenameOf(response, mimetype), mimetype };
    } catch (error) {
      if (error instanceof TypeError) throw invalid(PATH, "the file is compressed in a way that cannot be read");
      if (!(error instanceof EgressError)) throw error;
      if (error.code === "too_large") {
        throw new Problem("payload_too_large", `${PATH}: the file is larger than ${FETCH_MAX_BYTES / 1024 ** 2} MiB.`);
      }
      const message = `cannot be fetched: ${error.message}`;
      throw new Problem("validation_failed", `${PATH}: ${message}`, {
        errors: [{ path: PATH, message }],
        cause: error,
      });
    }
  };
}

/** Returns the file's content, decoded if the server compressed it unasked. The store limits the decoded size. */
async function decoded(response: SafeResponse): Promise<ReadableStream<Uint8Array>> {
  const coding = response.headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
  switch (coding) {
    case "identity":
      return response.body;
    case "gzip":
    case "deflate":
      return response.body.pipeThrough(new DecompressionStream(coding));
    default:
      await response.body.cancel();
      throw invalid(PATH, "the address sends the file in a compression that nobody asked for");
  }
}

/**
 * Returns the name given by the server, else the end of the URL's path, else "file"; with an extension if one is known.
 */
function filenameOf({ headers, url }: SafeResponse, mimetype: string): string {
  const name = safeFilename(dispositionFilename(headers.get("content-disposition") ?? "") ?? "") ??
    safeFilename(percentDecoded(url.pathname.split("/").at(-1) ?? "")) ?? "file";
  const extension = extensionFor(mimetype);
  return /\.[^.\s]{1,16}$/.test(name) || extension === null ? name : `${name}.${extension}`;
}

/** Returns the name in Content-Disposition; as it is written if it cannot be decoded. */
function dispositionFilename(header: string): string | undefined {
  const parameters = parametersOf(`;${header}`);
  try {
    return decodedParameter(parameters, "filename");
  } catch (error) {
    if (!(error instanceof Undecodable)) throw error;
    return parameters.get("filename");
  }
}
