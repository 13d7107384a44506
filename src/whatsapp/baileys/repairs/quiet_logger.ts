/**
 * Reduces Baileys' log to what is useful to an operator. The library puts handshakes, session records, nodes and texts
 * into its log objects, so only the sentences and fields listed here pass (promise 6).
 */
import { statusOf } from "../answer.ts";
import type { SocketConfig } from "@whiskeysockets/baileys";
import type { Log } from "../../../runtime.ts";

type BaileysLogger = SocketConfig["logger"];

/** The library's constant sentences that say something about the line, and the level at which they are logged. */
const SENTENCES: Readonly<Record<string, "warn" | "debug">> = {
  "timed out waiting for message": "warn",
  "stream errored out": "debug",
  "error in validating connection": "debug",
  "error in sending keep alive": "debug",
  "failed to decrypt message": "warn",
  "transaction failed, rolling back": "debug",
  "failed to run digest after login": "warn",
  "failed to send initial passive iq": "warn",
  "Failed to check/upload pre-keys during initialization": "warn",
  "Failed to upload pre-keys to server": "warn",
  "Failed to send retry": "warn",
  "error in handling message": "warn",
  "error in sending message again": "warn",
  "Failed to encrypt for recipient": "warn",
  "failed to store user device lists": "warn",
  "error 463: account restricted or missing tctoken for contact": "warn",
  "received error in ack": "warn",
  "Connection closed, skipping retry": "debug",
};

/** Returns a logger for the library that writes only what is known to be harmless to `log`. */
export function quietLogger(log: Log): BaileysLogger {
  const say = (subject: unknown, sentence?: string) => {
    const level = SENTENCES[typeof subject === "string" ? subject : sentence ?? ""];
    if (level) log[level](harmless(subject), typeof subject === "string" ? subject : sentence);
  };
  const drop = () => {};
  const logger: BaileysLogger = {
    // At a lower level, the library would render nodes as text that is then dropped.
    level: "warn",
    child: () => logger,
    trace: drop,
    debug: drop,
    info: drop,
    warn: say,
    error: say,
  };
  return logger;
}

/** Picks the error's name and code, and the message's id; never a text, a node or an error message. */
function harmless(subject: unknown): Record<string, string | number> {
  if (typeof subject !== "object" || subject === null) return {};
  const { err, error, msgId }: { err?: unknown; error?: unknown; msgId?: unknown } = subject;
  const cause = err ?? error;
  const fields: Record<string, string | number> = {};
  if (typeof msgId === "string") fields.networkId = msgId;
  if (cause instanceof Error) {
    fields.error = cause.name;
    const code = statusOf(cause);
    if (code !== null) fields.code = code;
  }
  return fields;
}
