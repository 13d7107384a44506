/** A place on the map. */
import { z } from "zod";
import { type Kind, kindRequest } from "./kind.ts";
import { label } from "./text.ts";

export interface LocationContent {
  kind: "location";
  latitude: number;
  longitude: number;
  name: string | null;
  address: string | null;
}

export const location: Kind<LocationContent> = {
  request: kindRequest({
    summary: "Send a location",
    fields: {
      latitude: z.number().min(-90).max(90).meta({ description: "Degrees, WGS 84", example: 41.3851 }),
      longitude: z.number().min(-180).max(180).meta({ description: "Degrees, WGS 84", example: 2.1734 }),
      name: label(1_000).nullish().meta({ description: "Name of the place", example: "Our shop" }),
      address: label(1_000).nullish().meta({ example: "Plaça de Catalunya 1, Barcelona" }),
    },
    contentOf: ({ latitude, longitude, name, address }) => ({
      kind: "location",
      latitude,
      longitude,
      name: name ?? null,
      address: address ?? null,
    }),
  }),
  preview: ({ name, address }) => ({ text: name ?? address, caption: null, filename: null }),
  characters: ({ name, address }) => (name ?? "").length + (address ?? "").length,
  body: (content) => content,
};
