/** `paloma plan`: the plan catalogue. */
import type { Command } from "commander";
import { type Hours, parseHours, printHours } from "../account/hours.ts";
import type { Plan } from "../account/plan.ts";
import { Problem } from "../errors.ts";
import { withData, withNewData } from "./data.ts";
import { note } from "./note.ts";
import { Exit, printResult, table } from "./output.ts";
import { OF_DATA, withSettings } from "./settings.ts";

export function addPlanCommand(root: Command): void {
  const plan = root.command("plan").description("manage the plan catalogue");
  const sub = (usage: string, about: string) =>
    withSettings(plan.command(usage).description(about), OF_DATA).option("--json", "print JSON");

  sub("list", "list all plans").action((options) =>
    withData(options, async ({ plans }) => {
      const all = await plans.list();
      printResult(options, all, () => describe(all));
    })
  );

  const set = sub("set <name>", "create or change a plan; options left out stay as they are");
  const parsed = (read: (flag: string, text: string) => number) => (option: string, about: string) =>
    set.option(option, about, (text) => read(option.split(" ")[0]!, text));
  const count = parsed(wholeNumber);
  const time = parsed(duration);
  count("--sessions <n>", "maximum sessions of an account");
  set.option("--daily <n>", "messages per UTC day, or none for no limit");
  set.option("--monthly <n>", "messages per UTC month, or none for no limit");
  time("--delay-min <duration>", "minimum pause between two messages of a line, such as 5s or 500ms");
  time("--delay-max <duration>", "maximum pause");
  set.option("--requests-per-minute <n>", "rate limit of a key, or none for no limit");
  count("--webhooks <n>", "maximum webhooks of an account");
  count("--event-streams <n>", "maximum open event streams of an account");
  count("--templates <n>", "maximum templates of an account");
  count("--verifications <n>", "maximum open verifications of an account");
  set.option(
    "--hours <hours>",
    'when messages may be sent, such as "mon-fri 09:00-18:00 Europe/Madrid", or none for any time',
  );
  set.option("--new-chats-daily <n>", "new chats that a line may start per day, or none for no limit");
  set.option("--warm-up", "allow fewer new chats in the first four weeks of a line");
  set.option("--no-warm-up", "allow the full number from the start");
  time("--typing <duration>", 'how long to show "typing" before each message');
  set.action((name: string, options) =>
    withNewData(options, async (data) => {
      const { plans } = data;
      if (options.delayMin > options.delayMax) throw new Exit(2, "--delay-min must not exceed --delay-max");
      const value = await namingFlags(plans.set({
        name,
        sessions: options.sessions,
        daily: limit("--daily", options.daily),
        monthly: limit("--monthly", options.monthly),
        delayMinMs: options.delayMin,
        delayMaxMs: options.delayMax,
        requestsPerMinute: limit("--requests-per-minute", options.requestsPerMinute),
        webhooks: options.webhooks,
        eventStreams: options.eventStreams,
        templates: options.templates,
        verifications: options.verifications,
        hours: hours(options.hours),
        newChatsDaily: limit("--new-chats-daily", options.newChatsDaily),
        warmUp: options.warmUp,
        typingMs: options.typing,
      }));
      await note(data, `plan_set: ${name}`, null);
      printResult(options, value, () => describe([value]));
    })
  );

  sub("delete <name>", "delete a plan that no account uses").action((name: string, options) =>
    withData(options, async (data) => {
      await data.plans.remove(name);
      await note(data, `plan_deleted: ${name}`, null);
      printResult(options, { name, deleted: true }, () => `Plan ${name} is deleted.`);
    })
  );
}

/** Flags whose names differ from those of the fields they set. */
const FLAGS: Record<string, string> = {
  name: "name",
  delayMinMs: "--delay-min",
  delayMaxMs: "--delay-max",
  typingMs: "--typing",
};

/** Settles as `made`, but reports validation errors by the names of the flags. Throws Exit. */
async function namingFlags<T>(made: Promise<T>): Promise<T> {
  try {
    return await made;
  } catch (error) {
    const errors = error instanceof Problem ? error.extras.errors : undefined;
    if (!errors) throw error;
    const flag = (path: string) => FLAGS[path] ?? `--${path.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    throw new Exit(2, errors.map(({ path, message }) => `${flag(path)} ${message}`).join("; "));
  }
}

/** Sessions of the plans that are for everything that a machine can carry. */
const UNLIMITED = 1_000_000;

const COLUMNS: readonly [string, (plan: Plan) => string][] = [
  ["NAME", ({ name }) => name],
  ["SESSIONS", ({ sessions }) => sessions >= UNLIMITED ? "no limit" : String(sessions)],
  ["DAILY", ({ daily }) => String(daily ?? "no limit")],
  ["MONTHLY", ({ monthly }) => String(monthly ?? "no limit")],
  ["PAUSE", ({ delayMinMs, delayMaxMs }) => `${delayMinMs / 1000}-${delayMaxMs / 1000} s`],
  ["REQUESTS/MIN", ({ requestsPerMinute }) => String(requestsPerMinute ?? "no limit")],
  ["WEBHOOKS", ({ webhooks }) => String(webhooks)],
  ["STREAMS", ({ eventStreams }) => String(eventStreams)],
  ["HOURS", ({ hours }) => hours ? printHours(hours) : "any"],
  ["NEW CHATS", ({ newChatsDaily, warmUp }) => `${newChatsDaily ?? "any"}${warmUp ? ", warm-up" : ""}`],
  ["TYPING", ({ typingMs }) => typingMs === 0 ? "no" : `${typingMs / 1000} s`],
];

function describe(plans: readonly Plan[]): string {
  return table([COLUMNS.map(([name]) => name), ...plans.map((plan) => COLUMNS.map(([, cell]) => cell(plan)))]);
}

function wholeNumber(flag: string, text: string): number {
  if (!/^\d{1,12}$/.test(text)) throw new Exit(2, `${flag}: "${text}" is not a whole number`);
  return Number(text);
}

/** Returns null for `none`: no limit. Not an option parser of commander, which takes null for "not given". */
function limit(flag: string, text: string | undefined): number | null | undefined {
  return text === undefined ? undefined : text === "none" ? null : wholeNumber(flag, text);
}

function hours(text: string | undefined): Hours | null | undefined {
  if (text === undefined || text === "none") return text && null;
  const read = parseHours(text);
  if (!read) throw new Exit(2, `--hours: "${text}" is not like "mon-fri 09:00-18:00 Europe/Madrid"`);
  return read;
}

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000 };

function duration(flag: string, text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m)?$/.exec(text) ?? [];
  if (number === undefined) throw new Exit(2, `${flag}: "${text}" is not a duration like 5s or 500ms`);
  return Math.round(Number(number) * UNITS[unit ?? "s"]!);
}
