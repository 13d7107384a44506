/** The life cycle shared by everything that starts and stops. A role is a list of services. */

export interface Service {
  /**
   * Resolves when the service is running. Idempotent. A start that throws may leave something for `stop` to clean up.
   */
  start(): Promise<void>;
  /**
   * Resolves when nothing of the service runs any longer. Idempotent, and safe without a start or after a failed one.
   */
  stop(): Promise<void>;
}

/** A step of a role: what it does at the start, at the stop, or both. */
export type Step = Partial<Service>;

/**
 * Starts the services in order and has the stack stop them in reverse. If a start throws, the error is passed on, and
 * the stack stops that service and those before it.
 */
export async function startServices(stack: AsyncDisposableStack, services: readonly Step[]): Promise<void> {
  for (const service of services) {
    stack.defer(() => service.stop?.());
    await service.start?.();
  }
}

/** Combines services into one; they start in order and stop at the same time. */
export function together(...services: readonly Service[]): Service {
  return {
    async start() {
      for (const service of services) await service.start();
    },
    async stop() {
      const outcomes = await Promise.allSettled(services.map((service) => service.stop()));
      const failed = outcomes.find((outcome) => outcome.status === "rejected");
      if (failed) throw failed.reason;
    },
  };
}
