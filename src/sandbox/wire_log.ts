/** The message stanzas of the lines as the server saw them: the witness of order, pauses and ids. */
export interface WireEntry {
  /** Number of the line that sent it. */
  line: string;
  id: string;
  to: string;
  /** Unix ms at which the stanza arrived, refused and repeated ones included. */
  time: number;
  /** Present on what answers a retry receipt: the same message, encrypted again for one device. */
  retry?: true;
}

export class WireLog {
  #entries: WireEntry[] = [];

  add(entry: WireEntry): void {
    this.#entries.push(entry);
  }

  /** Oldest first; of one line where it is named. */
  entries(line?: string): WireEntry[] {
    return line === undefined ? [...this.#entries] : this.#entries.filter((entry) => entry.line === line);
  }
}
