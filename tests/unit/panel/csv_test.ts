/** CSV files as spreadsheets save them, read for a bulk. */
import assert from "node:assert/strict";
import { decode, parse, read, variableOf } from "../../../src/panel/web/csv.js";

Deno.test("cells, quotes and line ends are read as spreadsheets write them", () => {
  const cases: [text: string, rows: string[][]][] = [
    ["", []],
    ["a,b\n1,2\n", [["a", "b"], ["1", "2"]]],
    ["a,b\r\n1,2", [["a", "b"], ["1", "2"]]],
    ["a;b\r1,5;2", [["a", "b"], ["1,5", "2"]]],
    ["a\tb\n1\t2", [["a", "b"], ["1", "2"]]],
    ['"a,b";c\n"say ""hi""";"two\r\nlines"\n', [["a,b", "c"], ['say "hi"', "two\r\nlines"]]],
    ['"";""""\n', [["", '"']]],
    ['a;"b\nnever closed', [["a", "b\nnever closed"]]],
    ['a;b"c";"d"e\n', [["a", 'b"c"', "de"]]],
    ["a,b\n\n,\n1,2", [["a", "b"], [""], ["", ""], ["1", "2"]]],
    ["one\n2", [["one"], ["2"]]],
  ];
  for (const [text, rows] of cases) assert.deepEqual(parse(text), rows, JSON.stringify(text));
});

Deno.test("a file is UTF-8 with or without a mark, UTF-16 by its mark, or else Windows-1252", () => {
  const bytes = (...values: number[]) => new Uint8Array(values).buffer;
  assert.equal(decode(new TextEncoder().encode("Añá €").buffer), "Añá €");
  assert.equal(decode(bytes(0xef, 0xbb, 0xbf, 0x41)), "A");
  assert.equal(decode(bytes(0x41, 0xf1, 0x20, 0x80)), "Añ €");
  assert.equal(decode(bytes(0xff, 0xfe, 0x41, 0, 0xf1, 0)), "Añ");
  assert.equal(decode(bytes()), "");
});

Deno.test("columns get names, blank rows go, and the column with the numbers is found", () => {
  const table = read(
    "Name;Nº factura;Teléfono;Id\r\nAna;A-1;+49 151 0000-0001;1234567\r\n\r\nBob;A-2;0151;1234568\r\n",
  );
  assert.deepEqual(table.columns.map(({ variable }) => variable), ["name", "no_factura", "telefono", "id"]);
  assert.deepEqual(table.rows.map(({ number, cells }) => [number, cells[0]]), [[2, "Ana"], [4, "Bob"]]);
  assert.equal(table.to, 2);
  const bare = read("Ana,4915100000001\nBob,4915100000002");
  assert.deepEqual([bare.columns.map(({ variable }) => variable), bare.rows.length, bare.to], [["1", "2"], 2, 1]);
  assert.deepEqual(read(""), { columns: [], rows: [], to: 0 });
  assert.deepEqual(read("a,b,\n1").columns.map(({ name }) => name), ["a", "b", "3"]);
});

Deno.test("a column's variable is a name that templates take", () => {
  const cases = { "First name": "first_name", "Número (móvil)": "numero_movil", "2. Nombre": "nombre", "€": "" };
  for (const [name, variable] of Object.entries(cases)) assert.equal(variableOf(name), variable);
});
