/** `paloma line`: moves a line to another gateway without a new QR. */
import type { Command } from "commander";
import { writeAll } from "../base/files.ts";
import { AlreadyRunning, lockGateway } from "../data/data_folder.ts";
import { assertData, withData } from "./data.ts";
import { Exit, printResult } from "./output.ts";
import { configOf, neededPassphrase, OF_DATA_AND_FILES, withPassphrase, withSettings } from "./settings.ts";

interface LineOptions extends Record<string, unknown> {
  passphraseFile?: string;
  account: string;
  json?: boolean;
}

export function addLineCommand(root: Command): void {
  const line = root.command("line").description("move a line to another gateway without a new QR code");
  const sub = (usage: string, about: string) =>
    withPassphrase(withSettings(line.command(usage).description(about), OF_DATA_AND_FILES))
      .option("--json", "print JSON");

  sub("export <id> <file>", "write the line's link and its waiting messages to a new file, and give them up here")
    .action(
      async (id: string, file: string, options: LineOptions) => {
        const passphrase = await neededPassphrase(options);
        const [{ fileEngine, linkCopy, openMedia }, { exportLine }] = await Promise.all([
          import("../engines.ts"),
          import("../line/transfer.ts"),
        ]);
        const config = configOf(options);
        await assertData(config);
        const { store, dataDir } = config;
        // If no gateway runs, none may start during the export. On a shared store the line's owner may be on any machine.
        const lock = store !== null ? null : await unlessRunning(lockGateway(dataDir, fileEngine));
        try {
          await withData(options, async (data) => {
            const media = await openMedia({ ...data, config });
            const deps = { ...data, media, link: await linkCopy(data) };
            const { line: { name }, messages } = await toNewFile(
              file,
              (output) => exportLine(deps, id, { passphrase, gatewayRuns: lock === null, ...output }),
            );
            printResult(
              options,
              { sessionId: id, name, messages, file },
              () =>
                `${file} links ${name} and holds ${messages} that wait. Keep it and its passphrase apart, import it at ` +
                "one place alone, and delete it then.",
            );
          });
        } finally {
          lock?.release();
        }
      },
    );

  sub("import <file>", "create a line from an exported one; it connects as soon as a gateway runs")
    .requiredOption("--account <id>", "the account that it will belong to")
    .action(async (file: string, options: LineOptions) => {
      const passphrase = await neededPassphrase(options);
      const sealed = await Deno.readFile(file);
      const [{ linkCopy, openMedia }, { makeClaims }, { importLine }] = await Promise.all([
        import("../engines.ts"),
        import("../cluster/leases.ts"),
        import("../line/transfer.ts"),
      ]);
      await withData(options, async (data) => {
        const config = configOf(options);
        const deps = {
          ...data,
          media: await openMedia({ ...data, config }),
          link: await linkCopy(data),
          claims: config.store === null ? null : makeClaims(data.kv),
        };
        const { line, messages } = await importLine(deps, options.account, { passphrase, file: sealed });
        const { id, name, phone } = line;
        printResult(
          options,
          { sessionId: id, name, phone, messages },
          () => `${name} (${phone}) is session ${id}, with ${messages} that waited.`,
        );
      });
    });
}

/** Resolves to the folder's lock; null if a gateway holds it. */
async function unlessRunning<Lock>(locking: Promise<Lock>): Promise<Lock | null> {
  try {
    return await locking;
  } catch (error) {
    if (error instanceof AlreadyRunning) return null;
    throw error;
  }
}

/** A new file, which is on disk once `write` has resolved. */
interface Output {
  write(bytes: Uint8Array): Promise<void>;
  discard(): Promise<void>;
}

/**
 * Creates the file before it calls `run`, so that the line is not given up if the file cannot be written. A file that
 * was not written, or is discarded, is removed. Throws Exit if the file exists already.
 */
async function toNewFile<T>(path: string, run: (output: Output) => Promise<T>): Promise<T> {
  const file = await createFile(path);
  let isKept = false;
  try {
    return await run({
      async write(bytes) {
        await writeAll(file, bytes);
        await file.sync();
        isKept = true;
      },
      discard: () => Promise.resolve(void (isKept = false)),
    });
  } finally {
    file.close();
    if (!isKept) await Deno.remove(path);
  }
}

async function createFile(path: string): Promise<Deno.FsFile> {
  try {
    return await Deno.open(path, { createNew: true, write: true, mode: 0o600 });
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    throw new Exit(1, `${path} already exists, and is not overwritten.`);
  }
}
