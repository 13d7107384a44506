/** The templates of an account. A change makes a new version, so that what waits says what it said at its accept. */
import type { Plan } from "../../account/plan.ts";
import { notFound, Problem } from "../../errors.ts";
import type { Runtime } from "../../runtime.ts";
import { deleteUnchanged } from "../../store/delete_range.ts";
import { Change, isRow, type Kv, retryOnConflict, type Row } from "../../store/kv.ts";
import { messageKeys } from "../rows.ts";
import { type Template, type TemplateBody, type TemplateRow, variablesOf } from "./template.ts";

interface TemplatesDeps {
  kv: Kv;
  runtime: Pick<Runtime, "clock" | "ids">;
}

export type Templates = ReturnType<typeof makeTemplates>;

/** Every method that names a template throws Problem not_found if there is none. */
export function makeTemplates({ kv, runtime: { clock, ids } }: TemplatesDeps) {
  /** Returns a page of the account's templates by name, those of one name oldest first, and how many it has. */
  async function page(
    accountId: string,
    { page, limit }: { page: number; limit: number },
  ): Promise<{ some: Template[]; total: number }> {
    const rows = await Array.fromAsync(kv.list({ prefix: messageKeys.templates(accountId) }));
    const inOrder = rows.map(({ value }) => value)
      .sort((a, b) => a.name < b.name ? -1 : a.name > b.name ? 1 : a.createdAt - b.createdAt);
    return { some: await whole(accountId, inOrder.slice((page - 1) * limit, page * limit)), total: rows.length };
  }

  /** Returns the template in this language; in the one that was made first, if none is named. */
  async function get(accountId: string, name: string, language: string | null): Promise<Template> {
    return (await whole(accountId, [(await find(accountId, name, language)).value]))[0]!;
  }

  /** Returns the template for a reader of this language: in it, else in its main language, else in the first made. */
  async function forReader(accountId: string, name: string, language: string | null): Promise<Template> {
    const rows = await named(accountId, name);
    const main = language && mainOf(language);
    const row = rows.find(({ value }) => value.language === language) ??
      rows.find(({ value }) => value.language.toLowerCase() === main) ??
      rows.find(({ value }) => mainOf(value.language) === main) ?? rows[0];
    if (!row) throw notFound("template");
    return (await whole(accountId, [row.value]))[0]!;
  }

  /** Creates a template. Throws Problem template_exists, limit_reached. */
  async function create(
    { account: { id: accountId }, plan }: { account: { id: string }; plan: Pick<Plan, "templates"> },
    { name, language, category, ...body }: TemplateBody & Pick<TemplateRow, "name" | "language" | "category">,
  ): Promise<Template> {
    return await retryOnConflict(kv, async () => {
      const [slot, made] = await Promise.all([
        kv.get(messageKeys.template(accountId, name, language)),
        kv.get(messageKeys.templatesMade(accountId)),
      ]);
      if (isRow(slot)) throw new Problem("template_exists", `"${name}" exists in the language "${language}".`);
      const held = await Array.fromAsync(kv.list({ prefix: messageKeys.templates(accountId) }));
      if (held.length >= plan.templates) {
        throw new Problem("limit_reached", `The plan allows ${plan.templates} templates.`);
      }
      const at = clock.now();
      const change = new Change().check(slot).check(made).set(made.key, (made.value ?? 0) + 1);
      const versionId = addVersion(change, accountId, body);
      const of = category === undefined ? {} : { category };
      const row = { accountId, name, language, versionId, createdAt: at, updatedAt: at, ...of };
      return { change: change.set(slot.key, row), result: shown(row, body) };
    });
  }

  /** Replaces the texts of a template. */
  async function replace(
    accountId: string,
    name: string,
    language: string | null,
    body: TemplateBody,
  ): Promise<Template> {
    return await retryOnConflict(kv, async () => {
      const slot = await find(accountId, name, language);
      const change = new Change().check(slot);
      await retire(change, slot.value);
      const versionId = addVersion(change, accountId, body);
      const row = { ...slot.value, versionId, updatedAt: clock.now() };
      return { change: change.set(slot.key, row), result: shown(row, body) };
    });
  }

  /** Deletes a template in one language, or in all if none is named; resolves to what was deleted. */
  async function remove(accountId: string, name: string, language: string | null): Promise<Template[]> {
    return await retryOnConflict(kv, async () => {
      const rows = language === null ? await named(accountId, name) : [await find(accountId, name, language)];
      if (rows.length === 0) throw notFound("template");
      const result = await whole(accountId, rows.map(({ value }) => value));
      const change = new Change();
      for (const row of rows) {
        change.check(row).delete(row.key);
        await retire(change, row.value);
      }
      return { change, result };
    });
  }

  /** Resolves to the templates of this name, oldest first. */
  async function named(accountId: string, name: string): Promise<Row<TemplateRow>[]> {
    const rows = await Array.fromAsync(kv.list({ prefix: messageKeys.templatesNamed(accountId, name) }));
    return rows.sort((a, b) => a.value.createdAt - b.value.createdAt);
  }

  async function find(accountId: string, name: string, language: string | null): Promise<Row<TemplateRow>> {
    const slot = language === null
      ? (await named(accountId, name))[0]
      : await kv.get(messageKeys.template(accountId, name, language));
    if (!slot || !isRow(slot)) throw notFound("template");
    return slot;
  }

  async function whole(accountId: string, rows: readonly TemplateRow[]): Promise<Template[]> {
    const keys = rows.map(({ versionId }) => messageKeys.templateVersion(accountId, versionId));
    const slots = await kv.getMany(keys);
    return rows.flatMap((row, i) => slots[i]!.value ? shown(row, slots[i]!.value) : []);
  }

  function addVersion(change: Change, accountId: string, { text, header, footer, options }: TemplateBody): string {
    const id = ids.next("tpl");
    change.set(messageKeys.templateVersion(accountId, id), { id, accountId, text, header, footer, options });
    return id;
  }

  async function retire(change: Change, { accountId, versionId }: TemplateRow): Promise<void> {
    const slot = await kv.get(messageKeys.templateVersion(accountId, versionId));
    if (isRow(slot)) change.check(slot).set(slot.key, { ...slot.value, retiredAt: clock.now() });
  }

  return { page, get, for: forReader, create, replace, remove };
}

function shown(row: TemplateRow, { text, header, footer, options }: TemplateBody): Template {
  const body = { text, header, footer, options };
  return { ...row, ...body, variables: variablesOf(body) };
}

/** Returns the language without its region, such as `es` of `es_MX`. */
function mainOf(language: string): string {
  return language.split(/[-_]/)[0]!.toLowerCase();
}

/** Longest time between the accept of a message and its end: scheduled 30 days ahead, it waits 7 more. */
const LONGEST_WAIT_MS = 40 * 24 * 3_600_000;

/** Removes versions that no message refers to any more; resolves to their number. */
export async function sweepTemplateVersions(
  kv: Kv,
  { now, keepMs, signal }: { now: number; keepMs: number; signal: AbortSignal },
): Promise<number> {
  const before = now - keepMs - LONGEST_WAIT_MS;
  async function* old() {
    for await (const row of kv.list({ prefix: messageKeys.allTemplateVersions() })) {
      if (row.value.retiredAt !== undefined && row.value.retiredAt < before) yield row;
    }
  }
  return await deleteUnchanged(kv, old(), { signal });
}
