/** `paloma chatwoot`: a line's chats as conversations of a Chatwoot inbox. The bridge uses nothing but the API. */
import type { Command } from "commander";
import { keyOf, type KeyOptions, withKey } from "./key.ts";
import { Exit, print, printError, printResult } from "./output.ts";
import { apiUrl, assertHttp } from "./settings.ts";
import { untilAsked } from "./signals.ts";

interface Options extends KeyOptions {
  url?: string;
  chatwoot?: string;
  chatwootAccount?: string;
  chatwootToken?: string;
  data: string;
  json?: boolean;
}

export function addChatwootCommand(root: Command): void {
  const group = root.command("chatwoot").description(
    "bring a line's chats into Chatwoot, and the agents' answers back",
  );
  withSides(group.command("connect").description("make an inbox for a line, and print what to check"))
    .requiredOption("--session <id>", "session of the line")
    .requiredOption("--public-url <url>", "address at which Chatwoot reaches the bridge")
    .action(async (options: Options & { session: string; publicUrl: string }) => {
      assertHttp("--public-url", options.publicUrl);
      const { store, chatwoot, paloma } = await open(options);
      const { checklist, connect } = await import("../../integrations/chatwoot/connect.ts");
      try {
        const { session: sessionId, publicUrl } = options;
        const link = await connect({ store, chatwoot, paloma, sessionId, publicUrl });
        printResult(options, { sessionId, inbox: link.inbox }, () => checklist(link).join("\n"));
      } catch (error) {
        throw new Exit(1, (error as Error).message);
      } finally {
        store.close();
      }
    });
  withSides(group.command("run").description("run the bridge for all connected lines"))
    .option("--listen <address>", "address for Chatwoot's webhooks", "127.0.0.1:8090")
    .option("--agent-names", "begin each message with its agent's name")
    .action(async (options: Options & { listen: string; agentNames?: boolean }) => {
      const [, hostname, port] = /^(.+):(\d{1,5})$/.exec(options.listen) ?? [];
      if (!hostname) throw new Exit(2, `--listen: "${options.listen}" is not HOST:PORT`);
      const asked = untilAsked();
      const { store, chatwoot, paloma } = await open(options);
      const { startBridge } = await import("../../integrations/chatwoot/bridge.ts");
      const agentNames = options.agentNames ?? false;
      const bridge = startBridge({
        store,
        chatwoot,
        paloma,
        hostname,
        port: Number(port),
        agentNames,
        log: printError,
      });
      const url = `http://${hostname}:${bridge.port}`;
      print(options.json ? JSON.stringify({ url }) : `The bridge is up: ${url}`);
      try {
        await Promise.race([asked, bridge.failed]);
      } catch (error) {
        throw new Exit(1, (error as Error).message);
      } finally {
        await bridge.stop();
        store.close();
      }
    });
}

function withSides(command: Command): Command {
  return withKey(command)
    .option("--url <url>", "base URL of the API, which ends in /v1 (default: the gateway on this machine)")
    .option("--chatwoot <url>", "address of Chatwoot [CHATWOOT_URL]")
    .option("--chatwoot-account <id>", "account in Chatwoot [CHATWOOT_ACCOUNT]")
    .option("--chatwoot-token <token>", "access token of an administrator [CHATWOOT_TOKEN]")
    .option("--data <file>", "file of the bridge", "./chatwoot.kv")
    .option("--json", "print JSON");
}

async function open(options: Options) {
  const given = (flag: string, value: string | undefined, name: string): string => {
    const found = value ?? Deno.env.get(name);
    if (!found) throw new Exit(2, `${flag} or ${name} is missing.`);
    return found;
  };
  const url = given("--chatwoot", options.chatwoot, "CHATWOOT_URL");
  assertHttp("--chatwoot", url);
  const account = given("--chatwoot-account", options.chatwootAccount, "CHATWOOT_ACCOUNT");
  if (!/^\d{1,9}$/.test(account)) throw new Exit(2, `--chatwoot-account: "${account}" is not a number`);
  const token = given("--chatwoot-token", options.chatwootToken, "CHATWOOT_TOKEN");
  const [{ Store }, { Chatwoot }, { Paloma }] = await Promise.all([
    import("../../integrations/chatwoot/store.ts"),
    import("../../integrations/chatwoot/chatwoot.ts"),
    import("../../clients/typescript/src/index.ts"),
  ]);
  const paloma = new Paloma(apiUrl(options.url, {}), await keyOf({ key: options.key, account: options.account }));
  return {
    store: await Store.open(options.data),
    chatwoot: new Chatwoot({ url, account: Number(account), token }),
    paloma,
  };
}
