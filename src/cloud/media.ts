/** Media: uploads that are sent later by their id, and downloads of these and of received files. */
import { z } from "@hono/zod-openapi";
import { readFormUpload } from "../http/body/multipart.ts";
import { checkContentType, checkLength, MIB } from "../http/body/body.ts";
import type { Services } from "../http/api/services.ts";
import { extensionFor, UNKNOWN_TYPE } from "../base/file_types.ts";
import { safeFilename, safeMimetype } from "../media/filename.ts";
import { fileContent } from "../message/kinds/file.ts";
import { CloudError, ofProblem } from "./errors.ts";
import { type OfMedia, type OfPhone, SUCCESS } from "./endpoint.ts";
import { fileIdOf, mediaIdOf } from "./media_id.ts";
import { Problem } from "../errors.ts";

const MAX_FILE_BYTES = 100 * MIB;
const MAX_BODY_BYTES = 102 * MIB;

const Form = z.looseObject({ messaging_product: z.string().optional(), type: z.string().max(200).optional() });

export function mediaOfPhone({ uploads, media, diskShares }: Services): OfPhone {
  return {
    "POST media": {
      scope: "send",
      async handle({ c, caller: { account }, line }) {
        try {
          media.assertPlace();
          diskShares.assertRoom(account.id);
          checkContentType(c.req.raw, "multipart/form-data");
          checkLength(c.req.raw, MAX_BODY_BYTES);
          const options = { part: "file", schema: Form, media, accountId: account.id, maxBytes: MAX_FILE_BYTES };
          const { fields, file, filename: given, mimetype: ofPart } = await readFormUpload(c.req.raw, options);
          const name = safeFilename(given);
          const asked = [fields.type, ofPart].find((type) => type && safeMimetype(type) !== UNKNOWN_TYPE);
          const mimetype = asked ?? (name ? fileContent(file, { filename: name }).mimetype : UNKNOWN_TYPE);
          const filename = name ?? `file.${extensionFor(mimetype) ?? "bin"}`;
          // If that fails, the sweep of orphans removes the file, unless the commit was written after all.
          await uploads.keep(file, { accountId: account.id, lineId: line.id, mimetype, filename });
          return { id: mediaIdOf(file.fileId) };
        } catch (error) {
          throw uploadError(error);
        }
      },
    },
  };
}

/** A form that cannot be taken is a media error; the rest is as everywhere. */
function uploadError(error: unknown): unknown {
  if (!(error instanceof Problem)) return error;
  const isOfFile = error.status === 413 || error.status === 415;
  return isOfFile ? new CloudError(131053, error.message) : ofProblem(error);
}

export function mediaById({ uploads, serveFile, links }: Services) {
  const ofMedia: OfMedia = {
    "GET ": {
      scope: "read",
      async handle({ caller: { account }, mediaId }) {
        const { mimetype, sha256, size } = await uploads.find(account.id, known(mediaId));
        const url = `${links.base()}/cloud/media/${mediaId}`;
        return { messaging_product: "whatsapp", url, mime_type: mimetype, sha256, file_size: size, id: mediaId };
      },
    },
    "DELETE ": {
      scope: "send",
      async handle({ caller: { account }, mediaId }) {
        await uploads.remove(account.id, known(mediaId));
        return SUCCESS;
      },
    },
    "GET content": {
      scope: "read",
      async handle({ c, caller: { account }, mediaId }) {
        const record = await uploads.find(account.id, known(mediaId));
        const header = (name: string) => c.req.header(name) ?? null;
        return await serveFile(record, {
          method: c.req.method === "HEAD" ? "HEAD" : "GET",
          range: header("range"),
          ifRange: header("if-range"),
          ifNoneMatch: header("if-none-match"),
        });
      },
    },
  };
  return ofMedia;
}

function known(mediaId: string): string {
  const fileId = fileIdOf(mediaId);
  if (fileId === null) throw new CloudError(100, "There is no media with this id.", 404);
  return fileId;
}
