/** How many bytes the files take together: counted folder by folder as they are walked, and kept up to date between. */
export class DiskUsage {
  /** A change puts another object in place, so that a count can tell that a file came or went under it. */
  readonly #folders = new Map<string, { bytes: number }>();

  /** Of a folder that was not walked yet, only what came since the start: never too much. */
  get bytes(): number {
    let sum = 0;
    for (const { bytes } of this.#folders.values()) sum += bytes;
    return sum;
  }

  /** A file of so many bytes came into the folder, or, with a negative number, went. */
  changed(folder: string, bytes: number): void {
    const before = this.#folders.get(folder)?.bytes ?? 0;
    this.#folders.set(folder, { bytes: Math.max(0, before + bytes) });
  }

  /** Begins a count; the function takes what was counted, unless the folder has changed meanwhile. */
  count(folder: string): (bytes: number) => void {
    const before = this.#folders.get(folder);
    return (bytes) => {
      if (this.#folders.get(folder) === before) this.#folders.set(folder, { bytes });
    };
  }
}
