/** The handshake of the official API: a target shows that it expects requests, by giving back a challenge. */
import { EgressError } from "../egress/egress_error.ts";
import type { SafeFetch } from "../egress/safe_fetch.ts";
import { invalid } from "../errors.ts";
import type { Random } from "../runtime.ts";

const TIMEOUT_MS = 10_000;
/** Far more than the challenge has. */
const MAX_ANSWER_BYTES = 16 * 1024;

/** Throws Problem validation_failed unless the target gives the challenge back. */
export async function shakeHands(
  { safeFetch, random }: { safeFetch: SafeFetch; random: Random },
  { url, verifyToken }: { url: string; verifyToken: string },
): Promise<void> {
  // Some frameworks take only a number.
  const challenge = String(random.between(10 ** 8, 2 ** 31 - 1));
  const asked = new URL(url);
  asked.searchParams.set("hub.mode", "subscribe");
  asked.searchParams.set("hub.challenge", challenge);
  asked.searchParams.set("hub.verify_token", verifyToken);
  let answer: string;
  try {
    const { status, body } = await safeFetch.fetch({
      url: asked.href,
      method: "GET",
      schemes: ["https:"],
      maxRedirects: 0,
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_ANSWER_BYTES,
    });
    answer = (await new Response(body).text()).trim();
    if (status !== 200) throw invalid("url", `did not verify: it answered the challenge with ${status}`);
  } catch (error) {
    if (error instanceof EgressError) throw invalid("url", `did not verify: ${error.message}`);
    throw error;
  }
  // A framework may have written it as JSON.
  if (answer.replaceAll('"', "") !== challenge) throw invalid("url", "did not verify: it did not answer the challenge");
}
