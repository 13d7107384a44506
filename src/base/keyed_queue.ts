/** Work that would only get into its own way if it ran at once, like changes of one row that each rest on its value. */

/** Runs `work` after all that was asked for earlier under the same name; settles as `work` does. */
export type InTurn = <T>(name: string, work: () => Promise<T>) => Promise<T>;

export function makeInTurn(): InTurn {
  /** The end of what was asked for last, by name; it never rejects. */
  const ends = new Map<string, Promise<void>>();
  return (name, work) => {
    const run = (ends.get(name) ?? Promise.resolve()).then(work);
    const forget = () => {
      if (ends.get(name) === end) ends.delete(name);
    };
    const end: Promise<void> = run.then(forget, forget);
    ends.set(name, end);
    return run;
  };
}
