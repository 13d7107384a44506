/** All formats of webhooks; the official API's is loaded with the first event that is told in it. */
import type { Kv } from "../store/kv.ts";
import { type Formats, palomaFormat } from "../webhook/format.ts";

export function formatsOn(kv: Pick<Kv, "get">): Formats {
  return {
    paloma: () => Promise.resolve(palomaFormat),
    cloud: async () => (await import("./webhook_format.ts")).cloudFormat(kv),
  };
}
