/** What a process asks of its store: reads, and commits that the disk had to flush (several of ours may share one). */

export interface StoreCalls {
  reads: number;
  flushes: number;
}

/** Counts from now on, in every store opened later; the function returns the counts so far. */
export function countStoreCalls(): () => StoreCalls {
  const calls: StoreCalls = { reads: 0, flushes: 0 };
  const { openKv } = Deno;
  const open = async (path?: string): Promise<Deno.Kv> => {
    const kv = await openKv(path);
    // Not on disk: the bell's queue.
    if (path === ":memory:") return kv;
    const { get, getMany, list, atomic } = kv;
    const counted =
      <Given extends unknown[], Answer>(call: (...given: Given) => Answer) => (...given: Given): Answer => {
        calls.reads++;
        return call.apply(kv, given);
      };
    return Object.assign(kv, {
      get: counted(get as () => unknown),
      getMany: counted(getMany as () => unknown),
      list: counted(list as () => unknown),
      atomic() {
        const operation = atomic.call(kv);
        const { commit } = operation;
        return Object.assign(operation, {
          commit() {
            calls.flushes++;
            return commit.call(operation);
          },
        });
      },
    });
  };
  Object.defineProperty(Deno, "openKv", { value: open });
  return () => ({ ...calls });
}
