/** An account's view of the gateway. */
import type { DocumentMessage, HistoryItem, Operations, TextMessage } from "./api.ts";
import { type EventsOptions, type FeedEvent, iterateEvents } from "./events.ts";
import { type RequestOptions, Transport, type TransportOptions } from "./transport.ts";
import { type FormFields, formWith } from "./upload.ts";

/** `GET /sessions/{id}`, `POST /webhooks`… */
export type Operation = keyof Operations;
export type Answer<O extends Operation> = Operations[O]["answer"];
export type Body<O extends Operation> = Operations[O] extends { body: infer B } ? B
  : never;

/** `text`, `poll`, `template`… */
export type Kind = Operation extends infer O ? O extends `POST /messages/send/${infer K}` ? K : never
  : never;
type SendOperation<K extends Kind> = Extract<
  Operation,
  `POST /messages/send/${K}`
>;

type OptionalIfEmpty<Name extends string, T> = object extends T ? { [N in Name]?: T }
  : { [N in Name]: T };
type Part<O extends Operation, Name extends string> = Operations[O] extends { [N in Name]: infer T }
  ? OptionalIfEmpty<Name, T>
  : unknown;
/** What an operation takes: `path`, `query` and `body`, as far as it has them. */
export type Input<O extends Operation> =
  & Part<O, "path">
  & Part<O, "query">
  & Part<O, "body">
  & RequestOptions;
type InputArguments<O extends Operation> = object extends Input<O> ? [input?: Input<O>]
  : [input: Input<O>];

export type FileFields = Omit<DocumentMessage, "file" | "fileUrl">;

const UPLOAD_TIMEOUT_MS = 600_000;
const HISTORY_PAGE = 100;

export class Paloma {
  readonly #transport: Transport;

  /** The base URL ends in `/v1`. */
  constructor(baseUrl: string, apiKey: string, options: TransportOptions = {}) {
    this.#transport = new Transport(baseUrl, apiKey, options);
  }

  /**
   * Calls any operation of the API, `request("GET /sessions/{id}", { path: { id } })`.
   * Throws PalomaError for what the gateway refuses, PalomaConnectionError if it cannot be reached.
   */
  async request<O extends Operation>(
    operation: O,
    ...[input]: InputArguments<O>
  ): Promise<Answer<O>> {
    const { path = {}, query = {}, body, ...options } = (input ?? {}) as
      & RequestOptions
      & {
        path?: Record<string, string>;
        query?: Record<string, unknown>;
        body?: unknown;
      };
    const [method, template] = operation.split(" ") as [string, string];
    const filled = template.replace(
      /\{(\w+)\}/g,
      (_, name) => encodeURIComponent(path[name]!),
    );
    const given = Object.entries(query).filter(([, value]) => value !== undefined);
    const search = new URLSearchParams(
      given.map(([name, value]) => [name, String(value)]),
    );
    const json = body === undefined ? null : JSON.stringify(body);
    return await this.#transport.json({
      ...options,
      method,
      path: given.length === 0 ? filled : `${filled}?${search}`,
      ...json !== null &&
        { body: () => ({ content: json, contentType: "application/json" }) },
    }) as Answer<O>;
  }

  /** Sends a message of a kind whose body is JSON. Resolves when the gateway has it on disk. */
  async send<K extends Kind>(
    kind: K,
    message: Body<SendOperation<K>>,
    options: RequestOptions = {},
  ): Promise<Answer<SendOperation<K>>> {
    const call = this.request as (
      operation: Operation,
      input: object,
    ) => Promise<Answer<SendOperation<K>>>;
    return await call.call(this, `POST /messages/send/${kind}` as Operation, {
      ...options,
      body: message,
    });
  }

  async sendText(
    message: TextMessage,
    options: RequestOptions = {},
  ): Promise<Answer<"POST /messages/send/text">> {
    return await this.send("text", message, options);
  }

  /**
   * Sends a file: a path, which is read from disk as it goes out, or a Blob. The extension of its name decides as what it
   * arrives; `filename` replaces the name. Throws the file system's error if there is no such file.
   */
  async sendFile(
    file: string | URL | Blob,
    { filename, ...fields }: FileFields,
    options: RequestOptions = {},
  ): Promise<Answer<"POST /messages/send/document">> {
    const body = await formWith(
      file,
      filename ?? nameOf(file),
      fields as FormFields,
    );
    return await this.#transport.json({
      timeoutMs: UPLOAD_TIMEOUT_MS,
      ...options,
      method: "POST",
      path: "/messages/send/file",
      body,
    }) as Answer<"POST /messages/send/document">;
  }

  /**
   * Iterates over events without end, oldest first, through interruptions of any length. Keep the `id` of the last event
   * that you have handled, and pass it as `after` to continue. Throws EventGapError if events after it are no longer kept.
   */
  events(options: EventsOptions = {}): AsyncGenerator<FeedEvent, never> {
    return iterateEvents(this.#transport, options);
  }

  /** Iterates over the messages that were sent, newest first. */
  async *history(
    filter: Omit<
      NonNullable<Input<"GET /messages/history">["query"]>,
      "page" | "limit"
    > = {},
  ): AsyncGenerator<HistoryItem> {
    const seen = new Set<string>();
    for (let page = 1;; page++) {
      const query = { ...filter, page, limit: HISTORY_PAGE };
      const { data } = await this.request("GET /messages/history", { query });
      // What was sent in the meantime moves the others to later pages.
      yield* data.filter(({ messageId }) => !seen.has(messageId));
      for (const { messageId } of data) seen.add(messageId);
      if (data.length < HISTORY_PAGE) return;
    }
  }
}

function nameOf(file: string | URL | Blob): string {
  if (file instanceof Blob) return "name" in file ? String(file.name) : "file";
  const path = file instanceof URL ? decodeURIComponent(file.pathname) : file;
  return path.split(/[/\\]/).at(-1)!;
}
