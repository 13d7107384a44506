/** What a send passes through, on a real store in memory: account, accept, history. Lines are names only. */
import { type Accounts, makeAccounts } from "../../src/account/accounts.ts";
import { Callers } from "../../src/account/callers.ts";
import { Idempotency } from "../../src/account/idempotency.ts";
import { type Plan, UNLIMITED } from "../../src/account/plan.ts";
import { Plans } from "../../src/account/plans.ts";
import type { Account, Caller } from "../../src/account/account.ts";
import { type Accept, makeAccept } from "../../src/message/accept.ts";
import type { Message } from "../../src/message/message.ts";
import { dequeue } from "../../src/message/queue/place.ts";
import { messageKeys } from "../../src/message/rows.ts";
import type { SendCommand } from "../../src/message/send_command.ts";
import { History } from "../../src/message/history/history.ts";
import { openDenoKv } from "../../src/store/deno_kv/deno_kv.ts";
import { lineKeys } from "../../src/line/rows.ts";
import type { Runtime } from "../../src/runtime.ts";
import { Change, type Key, type Kv } from "../../src/store/kv.ts";
import { makeSeal, sealKey } from "../../src/store/seal.ts";
import { type TestRuntime, testRuntime } from "./runtime.ts";
import { testEvents } from "./bell.ts";

export interface SendWorld<R extends Runtime = TestRuntime> {
  runtime: R;
  kv: Kv;
  accounts: Accounts;
  callers: Callers;
  idempotency: Idempotency;
  accept: Accept;
  history: History;
  /** Lines that accept reported as having new work, in order. */
  woken: string[];
}

/** The services of one process on the store. */
export function sendWorld<R extends Runtime>(kv: Kv, runtime: R): SendWorld<R> {
  const callers = new Callers({ kv, plans: new Plans(kv), clock: runtime.clock });
  const woken: string[] = [];
  const seal = makeSeal(sealKey("a secret for tests"), runtime.random);
  const idempotency = new Idempotency({ kv, runtime, seal, isShared: true });
  return {
    runtime,
    kv,
    accounts: makeAccounts({ kv, callers, runtime, seal }),
    callers,
    idempotency,
    accept: makeAccept({
      kv,
      runtime,
      idempotency,
      events: testEvents(kv, runtime),
      sessionName: () => Promise.resolve("line"),
      bell: { ring: (topic) => void woken.push(topic) },
    }),
    history: new History(kv),
    woken,
  };
}

/** Runs the test on an empty store. */
export async function withSendWorld(run: (world: SendWorld) => Promise<void>, seed = 1): Promise<void> {
  const runtime = testRuntime(seed);
  const kv = await openDenoKv(":memory:", { runtime });
  try {
    await new Plans(kv).addDefaults();
    await run(sendWorld(kv, runtime));
  } finally {
    kv.close();
  }
}

export function aPlan(limits: Partial<Plan> = {}): Plan {
  return {
    ...UNLIMITED,
    name: "tested",
    sessions: 10,
    delayMinMs: 0,
    delayMaxMs: 0,
    requestsPerMinute: null,
    ...limits,
  };
}

export function aCaller(limits: Partial<Plan> = {}, accountId = "acc_1"): Caller {
  const account: Account = {
    id: accountId,
    name: "acme",
    plan: "tested",
    active: true,
    expiresAt: null,
    allowedIps: [],
    allowedDomains: [],
    optOutWords: [],
    country: null,
    createdAt: 0,
  };
  return { account, plan: aPlan(limits) };
}

const LINES = new Map<string, SendCommand["line"]>();

/** A line without a row, which must stay so; the same one for the same id, as if it were remembered. */
export function aLine(id = "ses_1"): SendCommand["line"] {
  const line = LINES.get(id) ?? { id, row: { key: lineKeys.line(id), version: null } };
  LINES.set(id, line);
  return line;
}

/** A text to one recipient; `options` replace parts of the command. */
export function aSend(options: Partial<SendCommand> = {}): SendCommand {
  return {
    caller: aCaller(),
    line: aLine(),
    items: [{ to: "34600000001", content: { kind: "text", text: "hello" } }],
    bulk: false,
    ttlMs: 24 * 60 * 60 * 1000,
    sendAt: null,
    priority: "normal",
    idempotency: null,
    ...options,
  };
}

/** A bulk of `count` texts that differ. */
export function aBulk(count: number, options: Partial<SendCommand> = {}): SendCommand {
  const items = Array.from({ length: count }, (_, i) => ({
    to: `${34600000000 + i}`,
    content: { kind: "text" as const, text: `text ${i}` },
  }));
  return aSend({ items, bulk: true, ...options });
}

/** Records the message as sent, and takes it out of the queue. */
export async function endMessage(kv: Kv, message: Message): Promise<void> {
  const change = new Change().set(messageKeys.message(message.id), { ...message, status: "sent", sentAt: 1 });
  dequeue(change, message);
  await kv.commit(change);
}

/** Every key below the prefix, in order. */
export async function keysUnder(kv: Kv, prefix: Key): Promise<Key[]> {
  const found: Key[] = [];
  for await (const row of kv.list({ prefix })) found.push(row.key);
  return found;
}
