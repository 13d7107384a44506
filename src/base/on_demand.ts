/** What would cost a start much is made when something first needs it. */

export interface OnDemand<T> {
  /** Makes it, once for all who need it; what failed is tried again at the next need. */
  need(): Promise<T>;
  /** Null before it was made. */
  made(): T | null;
}

export function onDemand<T>(make: () => Promise<T>): OnDemand<T> {
  let making: Promise<T> | null = null;
  let result: T | null = null;

  async function attempt(): Promise<T> {
    try {
      return result = await make();
    } catch (error) {
      making = null;
      throw error;
    }
  }

  return {
    need: () => making ??= attempt(),
    made: () => result,
  };
}
