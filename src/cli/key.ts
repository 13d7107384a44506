/** The API key with which a command calls the gateway. */
import type { Command } from "commander";
import type { Account } from "../account/account.ts";
import { withData } from "./data.ts";
import { Exit } from "./output.ts";

export interface KeyOptions extends Record<string, unknown> {
  key?: string | undefined;
  account?: string | undefined;
}

export function withKey(command: Command): Command {
  return command.option("--key <key>", "API key [PALOMA_API_KEY] (default: of the only account)")
    .option("--account <name>", "account on this machine whose key is used: its name or ID");
}

/** Resolves to the key given, or to that of an account of the data on this machine. Throws Exit. */
export async function keyOf(options: KeyOptions): Promise<string> {
  const given = options.key ?? (options.account === undefined ? Deno.env.get("PALOMA_API_KEY") : undefined);
  if (given) return given;
  return await withData(options, async ({ accounts }) => {
    return await accounts.apiKey(chosen(await accounts.list(), options.account).id);
  });
}

function chosen(accounts: readonly Account[], asked: string | undefined): Account {
  const fitting = accounts.filter(({ id, name }) => asked === undefined || asked === id || asked === name);
  const [account, another] = fitting;
  if (account && !another) return account;
  if (accounts.length === 0) throw new Exit(1, "There is no account yet: paloma account create --name NAME --plan own");
  if (!account) throw new Exit(1, `There is no account named ${asked}: paloma account list shows them.`);
  const choice = asked === undefined ? "--account NAME, --key, or PALOMA_API_KEY" : "--account ID";
  throw new Exit(
    2,
    `There are several accounts${asked === undefined ? "" : ` named ${asked}`}: choose one with ${choice}.`,
  );
}
