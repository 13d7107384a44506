/** The output of commands: results on stdout, as lines for a person or as one JSON value; failures on stderr. */

const encoder = new TextEncoder();

function writeAll(stream: { writeSync(bytes: Uint8Array): number }, text: string): void {
  let bytes: Uint8Array = encoder.encode(text);
  while (bytes.length > 0) bytes = bytes.subarray(stream.writeSync(bytes));
}

/** Writes a line to stdout. Throws Deno.errors.BrokenPipe if the reader has closed the pipe, as `| head` does. */
export function print(line = ""): void {
  writeAll(Deno.stdout, line + "\n");
}

/** Writes a line to stderr. */
export function printError(line: string): void {
  writeAll(Deno.stderr, line + "\n");
}

/** Returns one line of JSON. Escapes the control characters that JSON leaves as they are and terminals may obey. */
export function jsonLine(value: unknown): string {
  return JSON.stringify(value).replaceAll(/[\x7f-\x9f]/g, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`);
}

/** Prints the result as one line of JSON if `--json` was given, otherwise as text. */
export function printResult(options: { json?: boolean }, value: unknown, text: () => string): void {
  print(options.json ? jsonLine(value) : text());
}

/** Returns the rows with aligned columns. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, i) => widths[i] = Math.max(widths[i] ?? 0, cell.length));
  return rows.map((row) => row.map((cell, i) => cell.padEnd(widths[i]!)).join("  ").trimEnd()).join("\n");
}

/** Ends the command with this exit code (1: failed, 2: wrong usage) and this message on stderr. */
export class Exit extends Error {
  override name = "Exit";

  constructor(readonly code: 1 | 2, message: string) {
    super(message);
  }
}

/** The command line is invalid, which the parser has already reported. */
export class Misuse extends Exit {
  constructor(message: string) {
    super(2, message);
    this.name = "Misuse";
  }
}
