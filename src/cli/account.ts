/** `paloma account`: accounts, their keys, and restrictions on the keys' use. */
import type { Command } from "commander";
import type { Account, AccountChange } from "../account/account.ts";
import { DEFAULT_PLAN } from "../account/plan.ts";
import { type Data, withData, withNewData } from "./data.ts";
import { note } from "./note.ts";
import { Exit, printResult, table } from "./output.ts";
import { OF_DATA, withSettings } from "./settings.ts";

export function addAccountCommand(root: Command): void {
  const account = root.command("account").description("manage accounts and their API keys");
  const sub = (usage: string, about: string) =>
    withSettings(account.command(usage).description(about), OF_DATA).option("--json", "print JSON");

  sub("create", "create an account and print its API key")
    .requiredOption("--name <name>", "its name")
    .option("--plan <plan>", "its plan", DEFAULT_PLAN)
    .option("--same-name", "although another account has that name")
    .action((options) =>
      withNewData(options, async (data) => {
        const { accounts } = data;
        const namesake = (await accounts.list()).find(({ name }) => name === options.name);
        if (namesake && !options.sameName) {
          throw new Exit(
            1,
            `Account ${namesake.id} is named ${options.name} already: choose another name, or --same-name.`,
          );
        }
        const { account, apiKey } = await accounts.create({ name: options.name, plan: options.plan });
        await note(data, "account_created", account.id);
        printResult(
          options,
          { accountId: account.id, name: account.name, plan: account.plan, apiKey },
          () => table([["account", account.id], ["name", account.name], ["plan", account.plan], ["API key", apiKey]]),
        );
      })
    );

  sub("list", "list all accounts").action((options) =>
    withData(options, async ({ accounts }) => {
      const all = await accounts.list();
      printResult(options, all.map(view), () =>
        table([
          ["ID", "NAME", "PLAN", "ACTIVE", "EXPIRES"],
          ...all.map((a) => [a.id, a.name, a.plan, a.active ? "yes" : "no", date(a.expiresAt)]),
        ]));
    })
  );

  sub("show <id>", "show an account and its API key").action((id: string, options) =>
    withData(options, async ({ accounts }) => {
      const found = await existing(accounts, id);
      const apiKey = await accounts.apiKey(id);
      printResult(options, { ...view(found), apiKey }, () => describe(found, apiKey));
    })
  );

  const change = (
    usage: string,
    about: string,
    values: (args: string[], given: ChangeOptions & { now: number }) => AccountChange,
  ) => {
    const command = sub(usage, about);
    return command.action((id: string) => {
      const options = command.opts<ChangeOptions>();
      return withData(options, async (data) => {
        const { accounts, runtime } = data;
        await existing(accounts, id);
        const asked = values(command.args, { ...options, now: runtime.clock.now() });
        const changed = await accounts.update(id, asked);
        await note(data, `account_changed: ${Object.keys(asked).join(", ")}`, id);
        printResult(options, view(changed), () => describe(changed));
      });
    });
  };

  change("set-plan <id> <plan>", "move it to another plan", ([, plan]) => ({ plan }));
  change("rename <id> <name>", "rename it", ([, name]) => ({ name }));
  change("deactivate <id>", "stop its key from working", () => ({ active: false }));
  change("activate <id>", "let its key work again", () => ({ active: true }));
  change("expire <id>", "end its subscription, now or on a date", (_, { at, now }) => ({ expiresAt: expiry(at, now) }))
    .option("--at <date>", "ISO 8601 date or time, or `never`");
  change("restrict <id>", "limit where its key may be used; an empty value removes the limit", (_, options) => {
    if (options.allowedIps === undefined && options.allowedDomains === undefined) {
      throw new Exit(2, "Give --allowed-ips, --allowed-domains, or both.");
    }
    return {
      ...(options.allowedIps !== undefined && { allowedIps: commaList(options.allowedIps) }),
      ...(options.allowedDomains !== undefined && { allowedDomains: commaList(options.allowedDomains) }),
    };
  })
    .option("--allowed-ips <cidrs>", "addresses and CIDRs, separated by commas")
    .option("--allowed-domains <hosts>", "host names, subdomains included, separated by commas");

  const choose = (usage: string, about: string, sealed: boolean) =>
    sub(usage, about).action((id: string, options) =>
      withData(options, async ({ accounts, runtime, ...data }) => {
        const [{ contents }, { rewriteContents }] = await Promise.all([
          import("../engines.ts"),
          import("../data/rekey.ts"),
        ]);
        await existing(accounts, id);
        const changed = await accounts.update(id, { sealed });
        const rows = await rewriteContents(data.kv, { accountId: id, families: contents, clock: runtime.clock });
        await note({ ...data, runtime }, "account_changed: sealed", id);
        printResult(options, { ...view(changed), rows }, () => `${describe(changed)}\nRows rewritten: ${rows}.`);
      })
    );

  choose("seal <id>", "encrypt its message contents at rest, including existing ones; sending costs more", true);
  choose("unseal <id>", "store its message contents unencrypted again", false);

  sub("delete <id>", "delete it with all its lines and data; the running gateway does the work")
    .option("--yes", "do not ask").action((
      id: string,
      options,
    ) =>
      withData(options, async (data) => {
        const { accounts } = data;
        const { name } = await existing(accounts, id);
        // Scripts have no terminal, and nobody who could answer.
        if (!options.yes && Deno.stdin.isTerminal() && prompt(`Type its name, ${name}, to delete it:`) !== name) {
          throw new Exit(1, "Nothing is deleted.");
        }
        await accounts.remove(id);
        await note(data, `account_deleted: ${name}`, id);
        printResult(
          options,
          { accountId: id, deleted: true },
          () =>
            `Account ${id} is deleted. The gateway unlinks its lines and removes its data within a minute, or when it next runs.`,
        );
      })
    );

  sub("rotate-key <id>", "create a new API key; the old one stops working at once").action((id: string, options) =>
    withData(options, async (data) => {
      const { accounts } = data;
      await existing(accounts, id);
      const apiKey = await accounts.rotateKey(id);
      await note(data, "key_regenerated", id);
      printResult(options, { accountId: id, apiKey }, () => table([["account", id], ["API key", apiKey]]));
    })
  );
}

interface ChangeOptions extends Record<string, unknown> {
  json?: boolean;
  at?: string;
  allowedIps?: string;
  allowedDomains?: string;
}

async function existing(accounts: Data["accounts"], id: string): Promise<Account> {
  const found = await accounts.get(id);
  if (!found) throw new Exit(1, `There is no account ${id}.`);
  return found;
}

/** A date, or a time; UTC if it has no zone. */
const ISO_TIME = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?$/;

function expiry(at: string | undefined, now: number): number | null {
  if (at === undefined) return now;
  if (at === "never") return null;
  // Other formats are ambiguous: 01.02.2027 may be in January or February.
  const [iso, day = "", moment, zone] = ISO_TIME.exec(at) ?? [];
  const time = iso ? Date.parse(iso + (moment && !zone ? "Z" : "")) : NaN;
  // `Date` would turn 30 February into a day in March.
  const isDay = !Number.isNaN(time) && new Date(day).toISOString().startsWith(day);
  if (!isDay) throw new Exit(2, `--at: "${at}" is not a date like 2027-01-31`);
  return time;
}

function commaList(text: string): string[] {
  return text.split(",").map((part) => part.trim()).filter(Boolean);
}

function date(time: number | null): string {
  return time === null ? "never" : new Date(time).toISOString();
}

function view(account: Account) {
  const { id, expiresAt, createdAt, ...rest } = account;
  return {
    accountId: id,
    ...rest,
    expiresAt: expiresAt === null ? null : date(expiresAt),
    createdAt: date(createdAt),
  };
}

function describe(account: Account, apiKey?: string): string {
  return table([
    ["account", account.id],
    ["name", account.name],
    ["plan", account.plan],
    ["active", account.active ? "yes" : "no"],
    ["expires", date(account.expiresAt)],
    ["allowed IPs", account.allowedIps.join(", ") || "any"],
    ["allowed domains", account.allowedDomains.join(", ") || "any"],
    ["sealed at rest", account.sealed ? "yes" : "no"],
    ["created", date(account.createdAt)],
    ...(apiKey ? [["API key", apiKey]] : []),
  ]);
}
