/** Tables whose names the compiler knows: the names of all rows, and whether a text is one of them. */

/** The table's own names, in its order. */
export function keysOf<Table extends object>(table: Table): Extract<keyof Table, string>[] {
  const names: Extract<keyof Table, string>[] = [];
  for (const name in table) names.push(name);
  return names;
}

/** Whether the table has a row of this name. */
export function isKeyOf<Table extends object>(table: Table, name: PropertyKey): name is keyof Table {
  return Object.hasOwn(table, name);
}
