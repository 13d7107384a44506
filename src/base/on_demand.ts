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
  return {
    need() {
      if (making === null) {
        making = make();
        making.then((made) => result = made, () => making = null);
      }
      return making;
    },
    made: () => result,
  };
}
