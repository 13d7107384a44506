/** How a question to the network fails. */

/** The network said no, or there is no connection to ask it by. The message is one sentence that clients may read. */
export class NetworkRefusal extends Error {
  override name = "NetworkRefusal";
  /** The network's number for the reason, where it gave one. */
  readonly code: number | null;

  constructor(message: string, { code = null, cause }: { code?: number | null; cause?: unknown } = {}) {
    super(message, { cause });
    this.code = code;
  }
}

/** The network did not answer in time. The message is one sentence that clients may read. */
export class NetworkTimeout extends Error {
  override name = "NetworkTimeout";
}
