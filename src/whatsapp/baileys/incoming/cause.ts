/**
 * A store that refuses before a message is decrypted (promise 4), told from one that refuses what the gateway wants by
 * itself.
 *
 * The library first looks up who the sender is, and learns it. When that fails it tells the network that it could not
 * take the message (`<ack error=500>`), which drops it for good. So whoever must end the connection hears of it before
 * the library does. From the decryption on the journal hears of it by itself. The library uses the same calls for what the
 * gateway asks: so what caused a piece of work goes with everything that is awaited.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { SignalRepositoryWithLIDStore } from "@whiskeysockets/baileys";
import { StoreError } from "../../../store/kv.ts";

export type Cause = ReturnType<typeof makeCause>;

/** What a piece of work was caused by; work that nobody marked counts as the gateway's own. */
export function makeCause() {
  const storage = new AsyncLocalStorage<"frame" | "own">();
  return {
    /** Runs `work` as caused by a frame. */
    frame: <T>(work: () => T): T => storage.run("frame", work),
    /** Runs `work` as the gateway's own, also where a frame led to it. */
    own: <T>(work: () => T): T => storage.run("own", work),
    isFrame: () => storage.getStore() === "frame",
  };
}

/** The repository that calls `broken` when the store refuses what a frame needs, and only then fails as before. */
export function reportRefusals(
  repository: SignalRepositoryWithLIDStore,
  cause: Pick<Cause, "isFrame">,
  broken: (error: StoreError) => void,
): SignalRepositoryWithLIDStore {
  const { lidMapping } = repository;

  function reporting<A extends unknown[], R>(call: (...args: A) => Promise<R>): (...args: A) => Promise<R> {
    return async (...args) => {
      try {
        return await call(...args);
      } catch (error) {
        if (error instanceof StoreError && cause.isFrame()) broken(error);
        throw error;
      }
    };
  }

  return {
    ...repository,
    migrateSession: reporting(repository.migrateSession),
    // The library's class has private fields, so whatever stands in for its object has to inherit from it.
    lidMapping: Object.assign(Object.create(lidMapping), {
      getLIDForPN: reporting(lidMapping.getLIDForPN.bind(lidMapping)),
      getLIDsForPNs: reporting(lidMapping.getLIDsForPNs.bind(lidMapping)),
      getPNForLID: reporting(lidMapping.getPNForLID.bind(lidMapping)),
      getPNsForLIDs: reporting(lidMapping.getPNsForLIDs.bind(lidMapping)),
      storeLIDPNMappings: reporting(lidMapping.storeLIDPNMappings.bind(lidMapping)),
    }),
  };
}
