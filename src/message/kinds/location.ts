/** A place on the map. */
import type { Kind } from "./kind.ts";

export interface LocationContent {
  kind: "location";
  latitude: number;
  longitude: number;
  name: string | null;
  address: string | null;
}

export const location: Kind<LocationContent> = {
  preview: ({ name, address }) => ({ text: name ?? address, caption: null, filename: null }),
  characters: ({ name, address }) => (name ?? "").length + (address ?? "").length,
  body: (content) => content,
};
