/** A form with a file, read from disk as it goes out. */
import type { RequestBody } from "./transport.ts";

export type FormFields = Record<
  string,
  string | number | boolean | readonly string[] | undefined
>;

interface FileSystem {
  createReadStream(path: string | URL): AsyncIterable<Uint8Array<ArrayBuffer>>;
  promises: { access(path: string | URL): Promise<void> };
}

/** Makes the body of each try. Throws the file system's error if there is no such file. */
export async function formWith(
  file: string | URL | Blob,
  name: string,
  fields: FormFields,
): Promise<() => RequestBody> {
  const texts = Object.entries(fields).flatMap(([field, value]) => value === undefined ? [] : [[field, String(value)]]);
  if (file instanceof Blob) {
    return () => {
      const form = new FormData();
      for (const [field, value] of texts) form.append(field!, value!);
      form.append("file", file, name);
      return { content: form };
    };
  }
  // By a variable, so that no bundler for browsers looks for it.
  const module = "node:fs";
  const fs: FileSystem = await import(module);
  await fs.promises.access(file);
  return () =>
    streamed(
      () => fs.createReadStream(file),
      name,
      texts as [string, string][],
    );
}

/** Written by hand because a FormData wants a Blob, which not every runtime reads from the disk bit by bit. */
function streamed(
  read: () => AsyncIterable<Uint8Array<ArrayBuffer>>,
  name: string,
  fields: readonly [string, string][],
): RequestBody {
  const boundary = `paloma-${crypto.randomUUID()}`;
  const part = (field: string, more = "") =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${field}"${more}\r\n`;
  const head = fields.map(([field, value]) => `${part(field)}\r\n${value}\r\n`).join("") +
    `${part("file", `; filename="${escaped(name)}"`)}content-type: application/octet-stream\r\n\r\n`;
  let failure: unknown;

  async function* chunks(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const encoder = new TextEncoder();
    yield encoder.encode(head);
    try {
      yield* read();
    } catch (error) {
      failure = error;
      throw error;
    }
    yield encoder.encode(`\r\n--${boundary}--\r\n`);
  }

  const source = chunks();
  const content = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      const { value, done } = await source.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: async () => void await source.return(undefined),
  });
  return {
    content,
    contentType: `multipart/form-data; boundary=${boundary}`,
    failure: () => failure,
  };
}

/** As browsers escape names in a form. */
function escaped(name: string): string {
  return name.replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll(
    "\n",
    "%0A",
  );
}
