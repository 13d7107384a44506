/**
 * Lines of other processes, as HTTP and panel use them. A call goes through the store to the process that holds the
 * line's lease, and is answered in time or ends as NetworkTimeout.
 */
import { isKeyOf } from "../base/typed_keys.ts";
import { type Ask, CallFailed, CallTimeout, makeAnswers } from "../cluster/calls.ts";
import type { WrittenError } from "../cluster/rows.ts";
import type { Service } from "../base/service.ts";
import { CATALOGUE, Problem } from "../errors.ts";
import { StoreError } from "../store/kv.ts";
import { NetworkRefusal, NetworkTimeout, PasskeyNotRequested, PasskeyRefused } from "../whatsapp/connection.ts";
import type { LiveConnection, LiveLines } from "./live.ts";
import type { Supervisor } from "./supervisor.ts";

interface Parts extends Pick<LiveConnection, "groups" | "contacts" | "chats"> {
  line: Pick<LiveLines, "deliver" | "health">;
  present: NonNullable<ReturnType<LiveLines["present"]>>;
  connection: Pick<LiveConnection, "checkNumber">;
}

/** The methods that other processes may call, by part of a line. */
const CALLABLE = {
  line: ["deliver", "health"],
  present: ["signPasskey", "confirmPasskey"],
  connection: ["checkNumber"],
  groups: [
    "list",
    "get",
    "create",
    "change",
    "setPicture",
    "leave",
    "changeMembers",
    "invite",
    "renewInvite",
    "join",
    "requests",
    "answerRequests",
  ],
  contacts: ["find", "card", "block", "unblock", "blocklist", "profile", "changeProfile"],
  chats: ["show", "namesOf", "read"],
} as const satisfies { [Part in keyof Parts]: readonly (keyof Parts[Part])[] };

type Called<Part extends keyof Parts> = Pick<Parts[Part], Extract<(typeof CALLABLE)[Part][number], keyof Parts[Part]>>;

/** Returns the lines that `ask` can reach. */
export function makeRemoteLines(ask: Ask): LiveLines {
  function part<Part extends keyof Parts>(lineId: string, name: Part): Called<Part> {
    const call = (method: string) => (...args: unknown[]) => awaitAnswer(ask(lineId, `${name}.${method}`, args));
    return Object.fromEntries(CALLABLE[name].map((method) => [method, call(method)])) as Called<Part>;
  }

  return {
    connection: (lineId) => ({
      ...part(lineId, "connection"),
      groups: part(lineId, "groups"),
      contacts: part(lineId, "contacts"),
      chats: part(lineId, "chats"),
    }),
    present: (lineId) => part(lineId, "present"),
    deliver: (lineId, message) => part(lineId, "line").deliver(lineId, message),
    health: (lineId) => part(lineId, "line").health(lineId),
  };
}

/** Answers the calls of other processes to the lines that this process holds. */
export function makeLineAnswers(
  { supervisor, ...options }: Omit<Parameters<typeof makeAnswers>[0], "answer" | "written"> & {
    supervisor: Supervisor;
  },
): Service {
  return makeAnswers({
    ...options,
    answer: (lineId, method, args) => answer(supervisor, lineId, { method, args }),
    written: serialize,
  });
}

/** Carries out a call, if the table above allows it. */
async function answer(
  supervisor: Supervisor,
  lineId: string,
  { method, args }: { method: string; args: unknown[] },
): Promise<unknown> {
  const [part = "", member = ""] = method.split(".");
  if (!isKeyOf(CALLABLE, part) || !CALLABLE[part].some((known) => known === member)) {
    throw new Error(`nobody may ask a line for ${method}`);
  }
  // deno-lint-ignore no-explicit-any -- the table and the port define the methods and their arguments
  return await (partOf(supervisor, lineId, part) as any)[member](...args);
}

function partOf(supervisor: Supervisor, lineId: string, part: keyof Parts): Parts[keyof Parts] {
  if (part === "line") return supervisor;
  if (part === "present") {
    const present = supervisor.present(lineId);
    if (!present) throw new PasskeyNotRequested();
    return present;
  }
  const connection = supervisor.connection(lineId);
  if (!connection) throw new Problem("session_not_connected", "The session is not connected.");
  return part === "connection" ? connection : connection[part];
}

const BY_NAME = { NetworkTimeout, PasskeyNotRequested, PasskeyRefused };

function serialize(error: unknown): WrittenError {
  if (error instanceof Problem) {
    const { code, message, extras: { retryAfterSeconds } } = error;
    return { name: "Problem", code, message, ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) };
  }
  if (error instanceof NetworkRefusal) return { name: "NetworkRefusal", message: error.message, code: error.code };
  if (error instanceof StoreError) return { name: "StoreError", message: error.message };
  if (error instanceof Error) return { name: error.name, message: error.message };
  return { name: "Error", message: String(error) };
}

function deserialize({ name, message, code = null, retryAfterSeconds }: WrittenError): Error {
  if (name === "Problem" && typeof code === "string" && isKeyOf(CATALOGUE, code)) {
    return new Problem(code, message, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });
  }
  if (name === "NetworkRefusal") return new NetworkRefusal(message, { code: typeof code === "number" ? code : null });
  if (name === "StoreError") return new StoreError("unavailable", message);
  return isKeyOf(BY_NAME, name) ? new BY_NAME[name](message) : new Error(`${name}: ${message}`);
}

/** Awaits an answer and rethrows its error. The answer is not validated: the other process keeps to the same port. */
async function awaitAnswer(answer: Promise<unknown>): Promise<unknown> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof CallTimeout) {
      throw new NetworkTimeout("The process that holds the session did not answer in time.", { cause: error });
    }
    throw error instanceof CallFailed ? deserialize(error.error) : error;
  }
}
