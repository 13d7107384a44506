/** The one life cycle: whatever runs between a start and a stop is a service, and a role is a list of services. */

export interface Service {
  /** Resolves when the service does its work. Idempotent. A start that throws may have left work for `stop`. */
  start(): Promise<void>;
  /** Resolves when nothing of the service runs any more. Idempotent, and safe without or after a failed start. */
  stop(): Promise<void>;
}

/** A step of a start or a stop; what it leaves out has nothing to do then. */
export type Step = Partial<Service>;

/**
 * Starts the services in order; the stack stops them in reverse. Throws what a start throws: the stack then stops that
 * service and those before it.
 */
export async function startServices(stack: AsyncDisposableStack, services: readonly Step[]): Promise<void> {
  for (const service of services) {
    stack.defer(() => service.stop?.());
    await service.start?.();
  }
}

/** Services as one, which start in order and stop in reverse. */
export function inOrder(...services: readonly Step[]): Service {
  return {
    async start() {
      for (const service of services) await service.start?.();
    },
    async stop() {
      for (const service of services.toReversed()) await service.stop?.();
    },
  };
}

/** Services as one, which start in order and stop at the same time. */
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
