/**
 * Linking an account that has a passkey (since 2026-06; the network calls it "shortcake").
 *
 * During a link by QR or code, the network may demand that a person sign a WebAuthn challenge with the account's
 * passkey. The gateway never holds a passkey: it passes the challenge on and receives the signed assertion.
 *
 * ```
 * passkey_prologue_request ──► required ── sign ──► crsc_continuation ──► confirm ── confirm ──► pair-success
 *                                 ▲  │ refused, or expired                  (skipped with the handoff proof)
 *                                 └──┘ a new challenge
 * ```
 *
 * The handoff proof shows that this is the link that the phone has started, so that nobody has to compare codes. It is
 * valid for five minutes. The key agreement between the two devices is in `companion.ts`.
 *
 * Sources: whatsmeow `pair-passkey.go`, WhatsApp Web `WAWebShortcakeLinking…`.
 */
import { Buffer } from "node:buffer";
import { type BinaryNode, getBinaryNodeChild } from "@whiskeysockets/baileys";
import { errorName, unlessMalformed } from "../../../base/retry.ts";
import type { Runtime } from "../../../runtime.ts";
import {
  NetworkTimeout,
  type PasskeyAssertion,
  PasskeyNotRequested,
  PasskeyRefused,
  type PasskeyRequest,
} from "../../connection.ts";
import type { AuthState } from "../auth_state.ts";
import { bytesIn, iq, queryError } from "../stanza.ts";
import { type Companion, handoffKey, handoffProof, makeAdvSecret, makeCompanion, pairingRequest } from "./companion.ts";

const HANDOFF_MS = 5 * 60_000;
/** As long as WhatsApp Web gives for a signature. A challenge's `timeout` is for one call of the browser. */
const CHALLENGE_MS = 10 * 60_000;
/** Linking is abandoned after this time without a signature. A challenge that expires before then is replaced. */
const SIGNED_WITHIN_MS = 15 * 60_000;
/** After a refusal, the network sends a new challenge within this time; otherwise the gateway requests one. */
const ASKED_AGAIN_MS = 3_000;
/** Time for a person to compare two codes. */
const CONFIRM_MS = 5 * 60_000;
/** Time for the phone to respond to the signature, and to complete the link, as WhatsApp Web gives it. */
const PHONE_MS = 10 * 60_000;
/** A phone that accepts the handoff proof responds at once. One that does not is asked again without it. */
const PROVEN_PHONE_MS = 60_000;
const NOBODY_SIGNED = "Nobody signed with the passkey in time.";
const PHONE_SILENT = "The phone did not answer.";
const NO_ANSWER = "The messaging network did not answer the passkey request.";

interface PasskeyEvents {
  /** What a person has to do now; null for nothing. */
  asked(request: PasskeyRequest | null): void;
  /** The passkey step failed: linking has to start over. */
  failed(reason: string): void;
}

interface PasskeyOptions {
  /** Resolves to the answer. If that is an error, rejects with the network's code in `data`. */
  query(node: BinaryNode): Promise<BinaryNode>;
  auth: Pick<AuthState, "creds" | "saveCreds">;
  runtime: Pick<Runtime, "clock" | "random" | "log">;
}

type Options = Record<string, unknown>;

interface Signed {
  companion: Companion;
  /** The network has received the handoff proof, so nobody has to compare codes. */
  isProven: boolean;
}

type Stage =
  | { name: "idle" | "busy" | "completing" }
  | { name: "required"; options: Options; expiresAt: number }
  | { name: "signed" } & Signed
  | { name: "confirm"; key: Uint8Array };

/** The state of the passkey step of one link, driven by a person, the network and the phone. */
export class Passkey {
  readonly #options: PasskeyOptions;
  readonly #events: PasskeyEvents;
  #stage: Stage = { name: "idle" };
  #begunAt = 0;
  /** The handoff key of the secret that the phone has scanned, or agreed on by the code. */
  #handoff: { key: Uint8Array; until: number } | null = null;
  /** Why the last signature was rejected. */
  #refusal: string | null = null;
  /** What the phone did not answer in time; it may do so late. */
  #unanswered: Signed | null = null;
  #cancelTimer = () => {};

  constructor(options: PasskeyOptions, events: PasskeyEvents) {
    this.#options = options;
    this.#events = events;
  }

  /** Handles `passkey_prologue_request`. Throws StoreError, and what a query throws. */
  async requested(notification: BinaryNode): Promise<void> {
    const { clock, log } = this.#options.runtime;
    this.#enter({ name: "busy" });
    this.#begunAt ||= clock.now();
    let request: Options;
    try {
      request = optionsIn(notification);
    } catch {
      request = await this.#askForOptions();
    }
    await this.#rotateSecret();
    log.info("the account asks for its passkey");
    this.#require(request);
  }

  /** Sends a signed challenge. Throws PasskeyNotRequested, PasskeyRefused, NetworkTimeout. */
  async sign(assertion: PasskeyAssertion): Promise<void> {
    if (this.#stage.name !== "required") throw new PasskeyNotRequested();
    const { options, expiresAt } = this.#stage;
    if (challengeOf(assertion) !== options.challenge) {
      const refused = new PasskeyRefused("The passkey signed another challenge than the one requested.");
      this.#refusal = refused.message;
      this.#require(options, expiresAt);
      throw refused;
    }
    this.#enter({ name: "busy" });
    try {
      const signed = await this.#sendPrologue(assertion);
      const late = () => signed.isProven ? this.#askUnproven(signed) : this.#fail(PHONE_SILENT);
      this.#enter({ name: "signed", ...signed }, signed.isProven ? PROVEN_PHONE_MS : PHONE_MS, late);
      this.#refusal = null;
      this.#events.asked(null);
    } catch (error) {
      if (error instanceof PasskeyRefused) {
        this.#refusal = error.message;
        this.#enter({ name: "busy" }, ASKED_AGAIN_MS, () => void this.#renew());
      } else this.#require(options, expiresAt);
      throw error;
    }
  }

  /** Handles `crsc_continuation`: the phone has accepted the signature. */
  async continued(notification: BinaryNode): Promise<void> {
    const { clock, log } = this.#options.runtime;
    const signed = this.#stage.name === "signed" ? this.#stage : this.#unanswered;
    if (!signed) return log.warn("the phone accepted a passkey that nobody signed with");
    const { companion, isProven } = signed;
    this.#unanswered = null;
    this.#enter({ name: "busy" });
    const { key, code } = companion.meet(contentOf(notification, "primary_ephemeral_identity"));
    await this.#tell({ tag: "companion_nonce", attrs: {}, content: companion.nonce });
    if (isProven) return await this.#complete(key);
    const late = () => this.#fail("Nobody confirmed the passkey's code in time.");
    this.#enter({ name: "confirm", key }, CONFIRM_MS, late);
    this.#events.asked({ stage: "confirm", code, expiresAt: clock.now() + CONFIRM_MS });
  }

  /** Completes the link once a person has compared the codes. Throws as `sign` does. */
  async confirm(): Promise<void> {
    if (this.#stage.name !== "confirm") throw new PasskeyNotRequested();
    await this.#complete(this.#stage.key);
  }

  /** Called when the link is complete, or has ended. */
  end(): void {
    this.#unanswered = null;
    this.#enter({ name: "idle" });
  }

  #enter(next: Stage, forMs = 0, late?: () => void): void {
    this.#cancelTimer();
    this.#stage = next;
    this.#cancelTimer = late ? this.#options.runtime.clock.after(forMs, late) : () => {};
  }

  #fail(reason: string): void {
    this.end();
    this.#events.asked(null);
    this.#events.failed(reason);
  }

  /** `expiresAt` is that of a challenge requested before; its lifetime does not begin anew. */
  #require(request: Options, expiresAt?: number): void {
    const { timeout } = request;
    const now = this.#options.runtime.clock.now();
    const lastsMs = Math.min(Math.max(Number(timeout) || 0, CHALLENGE_MS), SIGNED_WITHIN_MS);
    expiresAt ??= now + lastsMs;
    const late = () => void this.#renew(request.challenge);
    this.#enter({ name: "required", options: request, expiresAt }, Math.max(0, expiresAt - now), late);
    this.#events.asked({ stage: "required", options: request, expiresAt, refusal: this.#refusal });
  }

  /** The network took the signature, and nothing followed: it may take the proof for re-links only. */
  #askUnproven(signed: Signed): void {
    this.#handoff = null;
    this.#unanswered = signed;
    this.#refusal = `${PHONE_SILENT} Sign once more.`;
    void this.#renew();
  }

  /** Replaces a challenge that was refused, or this one that expired, within the same link. */
  async #renew(ranOut?: unknown): Promise<void> {
    const { clock, log } = this.#options.runtime;
    if (clock.now() - this.#begunAt >= SIGNED_WITHIN_MS) return this.#fail(NOBODY_SIGNED);
    this.#enter({ name: "busy" });
    const renewing = this.#stage;
    try {
      const request = await this.#askForOptions();
      if (this.#stage !== renewing) return; // requested again meanwhile, or ended
      if (request.challenge === ranOut) return this.#fail(NOBODY_SIGNED);
      this.#require(request);
    } catch (error) {
      log.debug({ error: errorName(error) }, "the network sent no new passkey challenge");
      this.#fail(this.#refusal ?? NOBODY_SIGNED);
    }
  }

  async #askForOptions(): Promise<Options> {
    const question = { tag: "passkey_request_options", attrs: {} };
    return optionsIn(await this.#options.query(iq({ type: "get", xmlns: "md" }, question)));
  }

  /** Keeps the key that proves knowledge of the present ADV secret, and replaces the secret. */
  async #rotateSecret(): Promise<void> {
    const { auth, runtime: { clock, random } } = this.#options;
    const secret = Buffer.from(auth.creds.advSecretKey, "base64");
    this.#handoff ??= { key: handoffKey(secret), until: clock.now() + HANDOFF_MS };
    auth.creds.advSecretKey = makeAdvSecret(random);
    await auth.saveCreds();
  }

  /** Sends one step of the protocol. Throws PasskeyRefused, NetworkTimeout. */
  async #tell(content: BinaryNode): Promise<void> {
    try {
      await this.#options.query(iq({ type: "set", xmlns: "md" }, content));
    } catch (error) {
      const code = queryError(error);
      if (code !== null) throw new PasskeyRefused(`The network refused the passkey (error ${code}).`);
      throw new NetworkTimeout(NO_ANSWER, { cause: error });
    }
  }

  async #sendPrologue(assertion: PasskeyAssertion): Promise<{ companion: Companion; isProven: boolean }> {
    const { query, runtime: { clock, random } } = this.#options;
    const answer = await query(iq({ type: "get", xmlns: "md" }, { tag: "ref", attrs: {} })).catch((cause) => {
      throw new NetworkTimeout(NO_ANSWER, { cause });
    });
    const companion = makeCompanion(contentOf(answer, "ref").toString("utf8"), random);
    const { prologue } = companion;
    const handoff = this.#handoff;
    const proof = handoff !== null && clock.now() < handoff.until ? handoffProof(handoff.key, prologue) : null;
    await this.#tell({
      tag: "passkey_prologue",
      attrs: {},
      content: [
        { tag: "credential_id", attrs: {}, content: Buffer.from(assertion.rawId, "base64url") },
        { tag: "webauthn_assertion", attrs: {}, content: Buffer.from(JSON.stringify(assertion)) },
        { tag: "prologue_payload", attrs: {}, content: prologue },
        ...(proof ? [{ tag: "pairing_handoff_proof", attrs: {}, content: proof }] : []),
      ],
    });
    return { companion, isProven: proof !== null };
  }

  async #complete(key: Uint8Array): Promise<void> {
    const { auth: { creds }, runtime: { random } } = this.#options;
    this.#enter({ name: "completing" }, PHONE_MS, () => this.#fail("The phone did not complete the link."));
    this.#events.asked(null);
    try {
      const content = pairingRequest(creds, key, random);
      await this.#tell({ tag: "encrypted_pairing_request", attrs: {}, content });
    } catch (error) {
      this.#fail(error instanceof Error ? error.message : "The link could not be completed.");
      throw error;
    }
  }
}

/** Throws if there is no such child, or if it is empty. */
function contentOf(node: BinaryNode, tag: string): Buffer {
  const content = bytesIn(getBinaryNodeChild(node, tag));
  if (content.length === 0) throw new Error(`the network sent no ${tag}`);
  return content;
}

function optionsIn(node: BinaryNode): Options {
  const options: Options | null = JSON.parse(contentOf(node, "passkey_request_options").toString("utf8"));
  if (typeof options?.challenge !== "string") throw new Error("the network sent no challenge");
  return options;
}

/** The challenge that the browser signed, base64url; null if the client data are malformed. */
function challengeOf({ response }: PasskeyAssertion): string | null {
  const read = () => JSON.parse(Buffer.from(response.clientDataJSON, "base64url").toString("utf8")).challenge;
  const challenge: unknown = unlessMalformed(read, null);
  return typeof challenge === "string" ? challenge : null;
}
