/** All that is tried. */
import { ON_DISK } from "./disk.ts";
import type { Trial } from "./journey.ts";
import { JOURNEYS } from "./journeys.ts";
import { MOVES } from "./moves.ts";
import { inWorld } from "./try_all.ts";

export const TRIALS: readonly Trial[] = [...JOURNEYS.map(inWorld), ...MOVES, ...ON_DISK];
