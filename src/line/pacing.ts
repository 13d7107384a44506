/**
 * Pauses between departures (promise 2): the gap on the wire between two departures of a line lies in its plan's
 * [min, max], restarts included.
 */

/** What a restart must know to keep the gap; written in the commit that records an outcome. */
export interface Pacing {
  /** When the last message departed, as far as we can tell from its ack; Unix ms. */
  lastDepartureAt: number;
  /** Before this nothing departs, Unix ms. */
  nextDepartureAt: number;
}
