/** A part of a file on disk as a stream. */
import { notFound } from "../errors.ts";

const CHUNK_BYTES = 64 * 1024;

/** Throws Problem not_found when there is no such file. */
export async function mustExist(path: string): Promise<void> {
  try {
    await Deno.stat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) throw notFound("file");
    throw error;
  }
}

/** Opens the file at the first read, so that an answer that is never read holds no file open. */
export function streamOf(
  path: string,
  { start, length }: { start: number; length: number },
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let file: Deno.FsFile | null = null;
  let left = length;
  let ended = false;
  const end = () => {
    ended = true;
    file?.close();
    file = null;
  };
  return new ReadableStream({
    async pull(controller) {
      try {
        if (file === null) {
          const opened = await openAt(path, start);
          // The client may have gone meanwhile, and then nobody else closes it.
          if (ended) return opened.close();
          file = opened;
        }
        const chunk = new Uint8Array(Math.min(CHUNK_BYTES, left));
        const read = left === 0 ? null : await file.read(chunk);
        if (ended) return;
        if (read !== null) {
          left -= read;
          return controller.enqueue(chunk.subarray(0, read));
        }
        // Fewer bytes than the row says: the response must not look complete.
        if (left > 0) throw new Error("the file on disk is shorter than its record");
        end();
        controller.close();
      } catch (error) {
        end();
        throw error;
      }
    },
    cancel: end,
  }, { highWaterMark: 0 });
}

async function openAt(path: string, start: number): Promise<Deno.FsFile> {
  const file = await Deno.open(path, { read: true });
  try {
    if (start > 0) await file.seek(start, Deno.SeekMode.Start);
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}
