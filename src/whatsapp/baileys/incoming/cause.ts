/**
 * Tells a store error while receiving a message (promise 4) from one during the gateway's own work.
 *
 * Before decryption, the library looks up the sender and stores what it learns. If that fails, it tells the network
 * that it could not take the message (`<ack error=500>`), and the network drops the message for good. So the owner of
 * the connection has to hear of the error before the library does, and end the connection. From decryption on, the
 * journal reports its own errors. The library makes the same calls for the gateway's own queries, so the cause of a
 * piece of work is carried along its asynchronous context.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { SignalRepositoryWithLIDStore } from "@whiskeysockets/baileys";
import { StoreError } from "../../../store/kv.ts";

export type Cause = ReturnType<typeof makeCause>;

/** Tracks what caused a piece of work. Unmarked work counts as the gateway's own. */
export function makeCause() {
  const storage = new AsyncLocalStorage<"frame" | "own">();
  return {
    /** Runs `work` as caused by a received frame. */
    frame: <T>(work: () => T): T => storage.run("frame", work),
    /** Runs `work` as the gateway's own, even if a frame led to it. */
    own: <T>(work: () => T): T => storage.run("own", work),
    isFrame: () => storage.getStore() === "frame",
  };
}

/**
 * Wraps the repository: if the store refuses something that a frame needs, `broken` is called before the error is
 * thrown.
 */
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
    // The library's class has private fields, so a replacement for its object has to inherit from it.
    lidMapping: Object.assign(Object.create(lidMapping), {
      getLIDForPN: reporting(lidMapping.getLIDForPN.bind(lidMapping)),
      getLIDsForPNs: reporting(lidMapping.getLIDsForPNs.bind(lidMapping)),
      getPNForLID: reporting(lidMapping.getPNForLID.bind(lidMapping)),
      getPNsForLIDs: reporting(lidMapping.getPNsForLIDs.bind(lidMapping)),
      storeLIDPNMappings: reporting(lidMapping.storeLIDPNMappings.bind(lidMapping)),
    }),
  };
}
