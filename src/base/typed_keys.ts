/** Typed keys of object literals used as tables. */

/** The table's keys, in order. */
export function keysOf<Table extends object>(table: Table): Extract<keyof Table, string>[] {
  const names: Extract<keyof Table, string>[] = [];
  for (const name in table) names.push(name);
  return names;
}

/** Whether the table has this key. */
export function isKeyOf<Table extends object>(table: Table, name: PropertyKey): name is keyof Table {
  return Object.hasOwn(table, name);
}
