/** Schema version 4: what is wanted of a line has a generation. */
import type { Migration } from "../data/migrate.ts";
import { Change } from "../store/kv.ts";
import type { Line } from "./line.ts";
import { lineKeys } from "./rows.ts";

type LineOfVersion3 = Omit<Line, "generation" | "observedGeneration"> & { wishNumber: number; takenWish: number };

export const nameGenerations: Migration = {
  to: 4,
  about: "what is wanted of a line has a generation",
  async run(kv) {
    for await (const { key, version, value } of kv.list<Line | LineOfVersion3>({ prefix: lineKeys.lines() })) {
      if (!("wishNumber" in value)) continue;
      const { wishNumber: generation, takenWish: observedGeneration, ...line } = value;
      // One that another process has converted meanwhile stays as it is.
      await kv.commit(new Change().check({ key, version }).set<Line>(key, { ...line, generation, observedGeneration }));
    }
  },
};
