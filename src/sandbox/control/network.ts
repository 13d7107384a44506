/** The running network as the control API sees it. */
import { z } from "zod";
import type { MediaHost } from "../media/host.ts";
import type { Phone } from "../phone/phone.ts";
import type { Switchboard } from "../world/switchboard.ts";
import { number } from "./request.ts";

export const newPhone = z.strictObject({
  number,
  name: z.string().min(1).max(100).optional(),
  /** Makes the account a business with this profile. */
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
}).refine(({ passkey, passkeyOptions }) => passkey || !passkeyOptions, {
  path: ["passkeyOptions"],
  message: "is for phones with a passkey",
});
type NewPhone = Omit<z.infer<typeof newPhone>, "number">;

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
  /** Opens an account with a phone. Throws Problem validation_failed if the number is in use. */
  addPhone(number: string, options?: NewPhone): Phone;
  phone(number: string): Phone | null;
}
