/**
 * The port to the alarm clock (promise 7: truth is rows, an alarm only wakes whoever reads them).
 *
 * Contract: an alarm may ring up to some 100 ms late, twice, or (after a crash) never. Whoever sets alarms therefore
 * re-arms at boot and in a slow sweep whatever has work waiting.
 */
export interface AlarmClock {
  /** Rings `topic` at `atMs` (Unix ms). Setting the same topic to a later time than one already set does nothing new. */
  set(topic: string, atMs: number): Promise<void>;
  /** The one listener for topics that begin with `prefix`; it must return at once. */
  listen(prefix: string, ring: (topic: string) => void): void;
}
