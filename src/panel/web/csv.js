// Reads the files that spreadsheets save: RFC 4180, with the delimiters and encodings that they use.

const CELL_ENDS = { ",": /[,\r\n]/g, ";": /[;\r\n]/g, "\t": /[\t\r\n]/g };
/** The delimiter is the most frequent in the first line. A file without any has one column. */
const MOST_HEAD = 10_000;

/** Rows looked at to find the column with the numbers. */
const SAMPLE = 200;
const NAMES_OF_NUMBERS = /phone|tel|m[oó]vil|mobile|celular|whatsapp|n[uú]m/i;

/** Returns the text of a file: UTF-8 or UTF-16 by its first bytes, else Windows-1252, which spreadsheets still write. */
export function decode(buffer) {
  const [first, second] = new Uint8Array(buffer);
  if (first === 0xff && second === 0xfe) return new TextDecoder("utf-16le").decode(buffer);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(buffer);
  } catch {
    return new TextDecoder("windows-1252").decode(buffer);
  }
}

/** Returns all rows, each an array of cells; blank ones too, so that an index is a row of the spreadsheet. */
export function parse(text) {
  const delimiter = delimiterOf(text);
  const cellEnds = CELL_ENDS[delimiter];
  const rows = [];
  let row = [];
  for (let at = 0; at < text.length;) {
    // In quotes, delimiters and line breaks are text; a quote in it is doubled: it ends one part and begins the next.
    const parts = [];
    while (text[at] === '"') {
      const close = text.indexOf('"', at + 1);
      const end = close < 0 ? text.length : close;
      parts.push(text.slice(at + 1, end));
      at = end + 1;
    }
    cellEnds.lastIndex = at;
    const end = cellEnds.exec(text)?.index ?? text.length;
    row.push(parts.join('"') + text.slice(at, end));
    at = end + 1;
    if (text[end] === delimiter && at < text.length) continue;
    if (text[end] === "\r" && text[at] === "\n") at++;
    rows.push(row);
    row = [];
  }
  return rows;
}

/**
 * Returns the table in a file's text: `columns` (`{ name, variable }`), `rows` (`{ number, cells }` without blank ones;
 * `number` counts from 1, as in the spreadsheet), and `to`, the index of the column with the phone numbers.
 */
export function read(text) {
  const rows = parse(text).map((cells, i) => ({ number: i + 1, cells: cells.map((cell) => cell.trim()) }))
    .filter(({ cells }) => cells.some(Boolean));
  const isNamed = rows.length > 0 && !rows[0].cells.some(isNumber);
  const names = isNamed ? rows.shift().cells : [];
  const width = rows.reduce((most, { cells }) => Math.max(most, cells.length), names.length);
  const columns = Array.from({ length: width }, (_, i) => {
    const variable = variableOf(names[i] ?? "") || String(i + 1);
    return { name: names[i] || String(i + 1), variable };
  });
  const sample = rows.slice(0, SAMPLE);
  const likely = columns.map(({ name }, i) =>
    sample.filter(({ cells }) => isNumber(cells[i] ?? "")).length + (NAMES_OF_NUMBERS.test(name) ? SAMPLE / 2 : 0)
  );
  return { columns, rows, to: Math.max(0, likely.indexOf(Math.max(...likely))) };
}

/** Returns the name by which a template or a text uses the column. */
export function variableOf(name) {
  const plain = name.normalize("NFKD").replaceAll(/\p{M}/gu, "").toLowerCase();
  return plain.replaceAll(/[^a-z0-9]+/g, "_").replace(/^[_0-9]+/, "").replace(/_$/, "").slice(0, 64);
}

const isNumber = (cell) => /^\d{7,15}$/.test(cell.replaceAll(/[^\p{L}\p{N}]/gu, ""));

function delimiterOf(text) {
  const head = text.slice(0, MOST_HEAD).replaceAll(/"[^"]*"/g, "").split(/[\r\n]/, 1)[0];
  const count = (delimiter) => head.split(delimiter).length;
  return Object.keys(CELL_ENDS).reduce((most, delimiter) => count(delimiter) > count(most) ? delimiter : most);
}
