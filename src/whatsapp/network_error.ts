/** The errors of a query to the network. */

/** The network refused, or there is no connection to ask through. The message is one sentence that clients may read. */
export class NetworkRefusal extends Error {
  override name = "NetworkRefusal";
  /** The network's number for the reason, if it gave one. */
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
