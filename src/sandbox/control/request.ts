/** What the routes of the control API share: the network that they operate, and how they read requests. */
import type { Context } from "@hono/hono";
import { z } from "zod";
import { validate } from "../../base/validation.ts";
import { Problem } from "../../errors.ts";
import type { MediaHost } from "../media/host.ts";
import type { Phone } from "../phone/phone.ts";
import type { Switchboard } from "../world/switchboard.ts";

export const TEMPLATE_STATUSES = ["APPROVED", "REJECTED", "PENDING"] as const;
type TemplateStatus = (typeof TEMPLATE_STATUSES)[number];

/** The running network as the control API sees it. */
export interface ControlledNetwork {
  /** URL of the WebSocket. */
  readonly url: string;
  /** The Noise root key that clients must pin, hex. */
  readonly rootKey: string;
  /** Base URL of the media host, and the authority that signed its certificate. */
  readonly mediaUrl: string;
  readonly caPem: string;
  readonly switchboard: Switchboard;
  readonly media: MediaHost;
  /** What the emulated Cloud API says of templates, by name; of others it says PENDING. */
  readonly templates: Map<string, TemplateStatus>;
  /** Opens an account with a phone. Throws Problem validation_failed if the number is in use. */
  addPhone(number: string, options?: Omit<z.infer<typeof newPhone>, "number">): Phone;
  phone(number: string): Phone | null;
}

export const number = z.string().regex(/^\d{7,15}$/, "must be 7 to 15 digits");

/** The network's rules for usernames: letters, digits, dots and underscores, at least one letter, single dots within. */
export const username = z.string().regex(/^(?=.*[a-z])(?!\.)(?!.*\.\.)(?!.*\.$)[a-z0-9_.]{3,35}$/i);

export const newPhone = z.strictObject({
  number,
  name: z.string().min(1).max(100).optional(),
  business: z.strictObject({
    description: z.string().max(500),
    category: z.string().max(100),
    address: z.string().max(200),
    email: z.string().max(100),
    website: z.string().max(200),
  }).partial().optional(),
  passkey: z.boolean().optional(),
  /** Whether the request for a passkey carries its options, or the companion has to query them. */
  passkeyOptions: z.enum(["notification", "query"]).optional(),
  username: username.optional(),
  /** What others have to know to look the username up. */
  usernamePin: z.string().regex(/^([0-9]{4}|[A-Z0-9]{6})$/).optional(),
  hidesNumber: z.boolean().optional(),
}).refine(({ passkey, passkeyOptions }) => passkey || !passkeyOptions, {
  path: ["passkeyOptions"],
  message: "is for phones with a passkey",
}).refine(({ username, usernamePin }) => username || !usernamePin, {
  path: ["usernamePin"],
  message: "is for phones with a username",
});

/** Parses the body with the schema, or with that of its form. Throws Problem malformed_json or validation_failed. */
export async function body<T>(c: Context, schema: z.ZodType<T> | ((json: unknown) => z.ZodType<T>)): Promise<T> {
  const json: unknown = await c.req.json().catch(() => {
    throw new Problem("malformed_json", "The body must be JSON.");
  });
  return validate(typeof schema === "function" ? schema(json) : schema, json);
}
