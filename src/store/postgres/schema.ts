/**
 * Paloma's schema in a PostgreSQL database: one table, and one function that commits. The first process to open the
 * store creates or migrates it under an advisory lock, for which all others wait.
 */
// @ts-types="@types/pg"
import type { ClientBase } from "pg";
import { StoreError } from "../kv.ts";

/** Key of `pg_advisory_xact_lock`: any number that nothing else in the database uses. */
const LOCK = 0x70616c6f6d61n;

/** Migrations. The schema's version is the number of those applied. A released step never changes. */
const STEPS: readonly string[] = [
  `
create sequence paloma.commit_number;

-- Returns a version that no commit had before: microseconds since 1970, then ten bits of the sequence's number. The
-- number alone would repeat after the promotion of a standby that lagged.
create function paloma.new_version() returns bigint language sql volatile as $$
  select ((extract(epoch from clock_timestamp()) * 1000000)::bigint << 10) | (nextval('paloma.commit_number') & 1023)
$$;

-- A row of the store. The key's bytes sort as the port's keys do. It holds a serialised value or a counter.
create table paloma.row (
  key bytea primary key,
  version bigint not null,
  value bytea,
  counter bigint,
  check ((value is null) <> (counter is null))
);

-- Commits many changes in one transaction, each with its own checks. Returns the version written, and the numbers of
-- the changes of which a check failed and nothing was written. A check for null expects no row. A mutation sets a value
-- (1), sets a counter (2), adds to a counter (3), or deletes (4). If changes write the same key, the last one wins.
-- Arrays are joined by hash, and the table is read by its index.
create function paloma.commit(
  check_change int[], check_key bytea[], check_version bigint[],
  change int[], kind int[], key bytea[], value bytea[], counter bigint[]
) returns table (version bigint, failed int[]) language plpgsql
set enable_seqscan = off set enable_nestloop = off as $$
#variable_conflict use_column
declare
  written bigint := paloma.new_version();
  refused int[];
  late int[];
  made bytea[];
begin
  -- Rows are locked in the order of their keys, so that commits cannot deadlock.
  with locked as (
    select r.key, r.version from paloma.row r where r.key = any (check_key || commit.key) order by r.key for update
  )
  select coalesce(array_agg(distinct c.change), '{}') into refused
  from unnest(check_change, check_key, check_version) c (change, key, version)
  left join locked l on l.key = c.key
  where c.version is distinct from l.version;

  -- An absent row cannot be locked: it is claimed by inserting it.
  if array_position(check_version, null) is not null then
    with claimed as (
      select distinct on (c.key) c.key, m.value, m.counter
      from unnest(check_change, check_key, check_version) c (change, key, version)
      left join unnest(commit.change, kind, commit.key, commit.value, commit.counter)
        m (change, kind, key, value, counter) on m.key = c.key and m.change = c.change and m.kind in (1, 2)
      where c.version is null and c.change <> all (refused)
      order by c.key, m.change desc nulls last
    ), inserted as (
      insert into paloma.row (key, version, value, counter)
      select c.key, written, c.value, case when c.value is null then coalesce(c.counter, 0) end
      from claimed c order by c.key
      on conflict do nothing returning key
    )
    select coalesce(array_agg(i.key), '{}') into made from inserted i;

    select coalesce(array_agg(distinct c.change), '{}') into late
    from unnest(check_change, check_key, check_version) c (change, key, version)
    where c.version is null and c.change <> all (refused)
      and not exists (select from unnest(made) i (key) where i.key = c.key);
    refused := refused || late;

    -- Claimed rows that no change sets are removed again.
    delete from paloma.row r where r.key = any (array(
      select i.key from unnest(made) i (key) except
      select m.key from unnest(commit.change, kind, commit.key) m (change, kind, key)
      where m.kind in (1, 2) and m.change <> all (refused)
    ));
    -- Rows inserted for a refused change may hold its values, so all are written again below.
    if cardinality(late) > 0 then made := '{}'; end if;
  end if;

  delete from paloma.row r where r.key = any (array(
    select m.key from unnest(commit.change, kind, commit.key) m (change, kind, key)
    where m.kind = 4 and m.change <> all (refused)
  ));

  insert into paloma.row as r (key, version, value, counter)
  select distinct on (m.key) m.key, written, m.value, m.counter
  from unnest(commit.change, kind, commit.key, commit.value, commit.counter) m (change, kind, key, value, counter)
  where m.kind in (1, 2) and m.change <> all (refused)
    and not exists (select from unnest(made) i (key) where i.key = m.key)
  order by m.key, m.change desc
  on conflict (key) do update set version = excluded.version, value = excluded.value, counter = excluded.counter;

  -- Adding to a value violates the table's constraint: the row would have neither a value nor a counter.
  insert into paloma.row as r (key, version, counter)
  select m.key, written, sum(m.counter)
  from unnest(commit.change, kind, commit.key, commit.counter) m (change, kind, key, counter)
  where m.kind = 3 and m.change <> all (refused)
  group by m.key order by m.key
  on conflict (key) do update set version = excluded.version, value = null, counter = r.counter + excluded.counter;

  return query select written, refused;
end $$;
`,
  // Less than the client waits: when it gives up, the statement goes on waiting, and many would pile up.
  `alter function paloma.commit(int[], bytea[], bigint[], int[], int[], bytea[], bytea[], bigint[])
     set lock_timeout = '7s'`,
];

/** Creates or migrates the schema. Throws StoreError if a newer Paloma has made it. */
export async function prepareSchema(client: ClientBase): Promise<void> {
  if (await versionOf(client) === STEPS.length) return;
  await client.query("begin");
  await client.query("select pg_advisory_xact_lock($1)", [LOCK]);
  await client.query("create schema if not exists paloma");
  await client.query("create table if not exists paloma.schema (version int not null)");
  const version = await versionOf(client);
  if (version > STEPS.length) {
    throw new StoreError("unavailable", "a newer Paloma made the database's schema: use that one");
  }
  for (const step of STEPS.slice(version)) await client.query(step);
  await client.query("delete from paloma.schema");
  await client.query("insert into paloma.schema values ($1)", [STEPS.length]);
  await client.query("commit");
}

/** Returns the schema's version; 0 if there is none yet. */
async function versionOf(client: ClientBase): Promise<number> {
  const { rows: [found] } = await client.query("select to_regclass('paloma.schema') is not null as made");
  if (!found.made) return 0;
  const { rows: [row] } = await client.query("select version from paloma.schema");
  return row?.version ?? 0;
}
