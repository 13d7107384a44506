/** `POST /faults` injects a fault of the network into one line; `DELETE /faults/{line}` ends the line's faults. */
import { Hono } from "@hono/hono";
import { z } from "zod";
import { invalid, notFound } from "../../errors.ts";
import type { Account } from "../world/directory.ts";
import { COUNTED_FAULTS, STREAM_FAULTS, TIMED_FAULTS } from "../world/faults.ts";
import { STATUS_FORMS, type Switchboard } from "../world/switchboard.ts";
import { body, number } from "./request.ts";

const DEFAULT_SECONDS = 30;
/** The server could not process the stanza. */
const DEFAULT_NACK = 500;
const DEFAULT_CODE_REFUSAL = 400;
/** The version of the web client is refused. */
const DEFAULT_LOGIN_REFUSAL = 405;

const seconds = z.number().positive().max(3600).default(DEFAULT_SECONDS);
const count = z.int().positive().max(10_000).default(1);
/** A code, as a number or its digits. */
const error = z.union([z.int(), z.string().regex(/^\d{3}$/).transform(Number)], "must be a code of three digits")
  .pipe(z.int().min(400).max(599));
const line = { line: number };

export const fault = z.discriminatedUnion("kind", [
  z.strictObject({ ...line, kind: z.enum(STREAM_FAULTS), count }),
  z.strictObject({ ...line, kind: z.enum(TIMED_FAULTS), seconds }),
  z.strictObject({ ...line, kind: z.literal("slow_upload"), seconds, count }),
  z.strictObject({ ...line, kind: z.literal("nack"), count, error: error.default(DEFAULT_NACK) }),
  z.strictObject({ ...line, kind: z.literal("status_post"), count, form: z.enum(STATUS_FORMS) }),
  /** `backoff`: seconds. */
  z.strictObject({
    ...line,
    kind: z.literal("refuse_code"),
    count,
    error: error.default(DEFAULT_CODE_REFUSAL),
    backoff: z.int().min(1).optional(),
  }),
  z.strictObject({ ...line, kind: z.literal("refuse_login"), count, error: error.default(DEFAULT_LOGIN_REFUSAL) }),
  z.strictObject({ ...line, kind: z.literal("no_keys"), device: z.int().min(0) }),
  /** `until` is Unix ms; a time in the past lifts the restriction. */
  z.strictObject({ ...line, kind: z.literal("restrict"), until: z.int().min(0), announced: z.boolean().optional() }),
  /** Caps the new chats that the account may start until then. */
  z.strictObject({ ...line, kind: z.literal("cap_new_chats"), limit: z.int().min(0), until: z.int().min(0) }),
  /** Lets the account's companions address people in this way only: by number before its chats migrate to LIDs. */
  z.strictObject({ ...line, kind: z.literal("demand_addressing"), form: z.enum(["lid", "pn"]) }),
  /** When the network will refuse the version of the web client, Unix ms. */
  z.strictObject({ ...line, kind: z.literal("client_expiration"), at: z.int().min(0) }),
  z.strictObject({ ...line, kind: z.literal("cloud_error"), count, code: z.int().positive() }),
  z.strictObject({ ...line, kind: z.literal("webhook_late"), count, seconds }),
  /** Gives the account another LID; with `announced`, whoever knows its devices is told. */
  z.strictObject({ ...line, kind: z.literal("refresh_lid"), announced: z.boolean().default(false) }),
  /** Changes the salt of the account's tokens, announced through the shared settings. */
  z.strictObject({ ...line, kind: z.literal("new_salt") }),
  z.strictObject({ ...line, kind: z.enum(COUNTED_FAULTS), count }),
]);

export function faultRoutes(network: Switchboard): Hono {
  const app = new Hono();
  const accountOf = (line: string) => {
    const account = network.directory.account(line);
    if (!account) throw notFound("line");
    return account;
  };

  app.post("/", async (c) => {
    const asked = await body(c, fault);
    causeFault(network, accountOf(asked.line), asked);
    return c.json(asked, 201);
  });
  // Ends all faults of the line, active and queued.
  app.delete("/:line", (c) => {
    const line = c.req.param("line");
    const account = accountOf(line);
    network.faults.lift(line);
    account.keyless.clear();
    account.addressing = null;
    account.clientExpiration = null;
    network.trust.lift(account);
    return c.json({ line });
  });
  return app;
}

/** Throws Problem validation_failed for a device that the line does not have. */
function causeFault(network: Switchboard, account: Account, asked: z.infer<typeof fault>): void {
  const { faults } = network;
  const { number } = account;
  switch (asked.kind) {
    case "silence":
    case "hold_acks":
      return faults.hold(number, asked.kind, asked.seconds * 1000);
    case "slow_upload":
    case "webhook_late":
      return faults.add(number, asked.kind, asked.seconds * 1000, asked.count);
    case "refuse_code": {
      const backoff = asked.backoff === undefined ? {} : { backoff: String(asked.backoff) };
      return faults.add(number, asked.kind, { code: String(asked.error), ...backoff }, asked.count);
    }
    case "cloud_error":
      return faults.add(number, asked.kind, asked.code, asked.count);
    case "nack":
    case "refuse_login":
      return faults.add(number, asked.kind, String(asked.error), asked.count);
    case "status_post":
      for (let i = 0; i < asked.count; i++) network.postStatus(account, asked.form);
      return;
    case "no_keys":
      if (asked.device !== 0 && !account.companions.has(asked.device)) {
        throw invalid("device", "is not a device of this line");
      }
      account.keyless.add(asked.device);
      return;
    case "demand_addressing":
      account.addressing = asked.form;
      return;
    case "client_expiration":
      account.clientExpiration = asked.at;
      for (const { session } of account.companions.values()) session?.tellExpiration();
      return;
    case "restrict":
      return network.trust.restrict(account, asked.until, asked);
    case "cap_new_chats":
      return network.trust.capNewChats(account, asked);
    case "refresh_lid": {
      const old = account.lid;
      network.directory.move(account, network.runtime.random);
      return asked.announced ? network.notices.lidChange(account, old) : undefined;
    }
    case "new_salt":
      network.trust.renewSalt(account);
      return account.phone?.shareSalt();
    case "drop":
    case "replace":
    case "logout":
    case "restart":
    case "unavailable":
      return network.breakSessions(account, asked);
    default:
      return faults.add(number, asked.kind, true, asked.count);
  }
}
