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
import {
  type Connection,
  NetworkRefusal,
  NetworkTimeout,
  PasskeyNotRequested,
  PasskeyRefused,
} from "../whatsapp/connection.ts";
import type { LiveConnection, LiveLines } from "./live.ts";
import type { Supervisor } from "./supervisor.ts";

/** The methods of a line's connection that other processes may call, by part. */
const CALLABLE = {
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
} as const satisfies { [Part in "groups" | "contacts" | "chats"]: readonly (keyof Connection[Part])[] };

const ON_PRESENT = ["signPasskey", "confirmPasskey"] as const;

/** Returns the lines that `ask` can reach. */
export function makeRemoteLines(ask: Ask): LiveLines {
  const call = (lineId: string, method: string) => <Args extends unknown[], Result>(...args: Args) =>
    awaitAnswer<Result>(ask(lineId, method, args));

  function part<Name extends keyof typeof CALLABLE>(lineId: string, name: Name): LiveConnection[Name] {
    const methods = CALLABLE[name].map((method) => [method, call(lineId, `${name}.${method}`)]);
    return Object.fromEntries(methods);
  }

  return {
    connection: (lineId) => ({
      checkNumber: call(lineId, "checkNumber"),
      groups: part(lineId, "groups"),
      contacts: part(lineId, "contacts"),
      chats: part(lineId, "chats"),
    }),
    present: (lineId) => ({
      signPasskey: call(lineId, "signPasskey"),
      confirmPasskey: call(lineId, "confirmPasskey"),
    }),
    deliver: (lineId, message) => call(lineId, "deliver")(message),
    health: (lineId) => call(lineId, "health")(),
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
  if (method === "health") return await supervisor.health(lineId);
  if (method === "deliver") return await invoke(supervisor, method, [lineId, ...args]);
  if (ON_PRESENT.some((known) => known === method)) {
    const present = supervisor.present(lineId);
    if (!present) throw new PasskeyNotRequested();
    return await invoke(present, method, args);
  }
  const connection = supervisor.connection(lineId);
  if (!connection) throw new Problem("session_not_connected", "The session is not connected.");
  if (method === "checkNumber") return await invoke(connection, method, args);
  const [name = "", member = ""] = method.split(".");
  if (!isKeyOf(CALLABLE, name) || !CALLABLE[name].some((known) => known === member)) {
    throw new Error(`nobody may ask a connection for ${method}`);
  }
  return await invoke(connection[name], member, args);
}

// deno-lint-ignore no-explicit-any -- the table and the port define the methods and their arguments
function invoke(target: any, method: string, args: unknown[]): Promise<unknown> {
  return target[method](...args);
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
async function awaitAnswer<Result>(answer: Promise<unknown>): Promise<Result> {
  try {
    return await answer as Result;
  } catch (error) {
    if (error instanceof CallTimeout) {
      throw new NetworkTimeout("The process that holds the session did not answer in time.", { cause: error });
    }
    throw error instanceof CallFailed ? deserialize(error.error) : error;
  }
}
