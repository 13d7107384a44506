/**
 * Linking an account that has a passkey (since 2026-06; in the network's words "shortcake").
 *
 * During a link by QR or code the network may demand that a person signs a WebAuthn challenge with the account's
 * passkey. The gateway never holds a passkey: it hands the challenge out and takes the signed assertion back.
 *
 * ```
 * passkey_prologue_request ──► required ── sign ──► crsc_continuation ──► confirm ── confirm ──► pair-success
 *                                 ▲  │ refused, or its time is over         (skipped with the handoff proof)
 *                                 └──┘ a new challenge
 * ```
 *
 * The handoff proof shows that the link which asks is the one that the phone began; with it nobody has to compare
 * codes. It is good for five minutes. What the two devices agree on meanwhile is in `companion.ts`.
 *
 * Sources: whatsmeow `pair-passkey.go`, WhatsApp Web `WAWebShortcakeLinking…`.
 */
import { Buffer } from "node:buffer";
import { type AuthenticationCreds, type BinaryNode, getBinaryNodeChild, S_WHATSAPP_NET } from "@whiskeysockets/baileys";
import { errorName } from "../../../base/detached.ts";
import type { Runtime } from "../../../runtime.ts";
import { NetworkTimeout } from "../../network_error.ts";
import { type PasskeyAssertion, PasskeyNotRequested, PasskeyRefused, type PasskeyRequest } from "../../passkey.ts";
import { queryError } from "../library_error.ts";
import { type Companion, handoffKey, handoffProof, makeCompanion, pairingRequest } from "./companion.ts";

const HANDOFF_MS = 5 * 60_000;
const ADV_SECRET_BYTES = 32;
/** Of a challenge that does not say how long it is good. */
const CHALLENGE_MS = 5 * 60_000;
/** A link is given up after so long without a signature; each challenge that runs out meanwhile is replaced. */
const SIGNED_WITHIN_MS = 15 * 60_000;
/** After a refusal the network asks again by itself within this time, or is asked for a new challenge. */
const ASKED_AGAIN_MS = 3_000;
/** For a person to compare two codes. */
const CONFIRM_MS = 5 * 60_000;
/** For the phone to answer the signature, and to complete the link. */
const PHONE_MS = 60_000;

interface PasskeyEvents {
  /** What a person has to do now; null while nothing is asked of anybody. */
  asked(request: PasskeyRequest | null): void;
  /** It came to nothing; the link has to begin anew. */
  failed(reason: string): void;
}

interface PasskeyOptions {
  /** Resolves to the answer; rejects with the network's code in `data` when that is an error. */
  query(node: BinaryNode): Promise<BinaryNode>;
  creds: AuthenticationCreds;
  saveCreds(): Promise<void>;
  runtime: Pick<Runtime, "clock" | "random" | "log">;
}

export interface Passkey {
  /** `passkey_prologue_request` came. Throws StoreError, and what a query throws. */
  requested(notification: BinaryNode): Promise<void>;
  /** `crsc_continuation` came: the phone took the signature. */
  continued(notification: BinaryNode): Promise<void>;
  /** Throws PasskeyNotRequested, PasskeyRefused, NetworkTimeout. */
  sign(assertion: PasskeyAssertion): Promise<void>;
  /** Throws as `sign` does. */
  confirm(): Promise<void>;
  /** The link is complete, or over. */
  end(): void;
}

type Options = Record<string, unknown>;

type Stage =
  | { name: "idle" | "busy" | "completing" }
  | { name: "required"; options: Options }
  /** `isProven`: the network was shown the handoff proof, so nobody compares codes. */
  | { name: "signed"; companion: Companion; isProven: boolean }
  | { name: "confirm"; key: Uint8Array };

export function makePasskey(options: PasskeyOptions, events: PasskeyEvents): Passkey {
  const { query, creds, saveCreds, runtime } = options;
  const { clock, random, log } = runtime;
  let stage: Stage = { name: "idle" };
  let begunAt = 0;
  /** Of the secret that the phone has scanned, or agreed on by the code. */
  let handoff: { key: Uint8Array; until: number } | null = null;
  /** Why the last signature was not taken. */
  let refusal: string | null = null;
  let cancelTimer = () => {};

  function enter(next: Stage, timer?: { afterMs: number; run: () => void }): void {
    cancelTimer();
    stage = next;
    cancelTimer = timer ? clock.after(timer.afterMs, timer.run) : () => {};
  }

  function fail(reason: string): void {
    enter({ name: "idle" });
    events.asked(null);
    events.failed(reason);
  }

  function require(request: Options): void {
    const { timeout } = request;
    const lastsMs = typeof timeout === "number" && timeout > 0 ? Math.min(timeout, SIGNED_WITHIN_MS) : CHALLENGE_MS;
    enter({ name: "required", options: request }, { afterMs: lastsMs, run: () => void renew(request.challenge) });
    events.asked({ stage: "required", options: request, expiresAt: clock.now() + lastsMs, refusal });
  }

  /** Another challenge in place of one that was refused, or of this one that ran out, within the same link. */
  async function renew(ranOut?: unknown): Promise<void> {
    if (clock.now() - begunAt >= SIGNED_WITHIN_MS) return fail("Nobody signed with the passkey in time.");
    enter({ name: "busy" });
    const renewing = stage;
    try {
      const request = await askForOptions();
      if (stage !== renewing) return; // asked again meanwhile, or over
      if (request.challenge === ranOut) return fail("Nobody signed with the passkey in time.");
      require(request);
    } catch (error) {
      log.debug({ error: errorName(error) }, "the network gave no new passkey challenge");
      fail(refusal ?? "Nobody signed with the passkey in time.");
    }
  }

  async function askForOptions(): Promise<Options> {
    return optionsIn(await query(iq("get", { tag: "passkey_request_options", attrs: {} })));
  }

  /** The proof that the present ADV secret was known; a fresh one takes its place. */
  async function rotateSecret(): Promise<void> {
    const secret = Buffer.from(creds.advSecretKey, "base64");
    handoff ??= { key: handoffKey(secret), until: clock.now() + HANDOFF_MS };
    creds.advSecretKey = Buffer.from(random.bytes(ADV_SECRET_BYTES)).toString("base64");
    await saveCreds();
  }

  /** What the network answers to this step of the protocol. */
  async function tell(content: BinaryNode): Promise<void> {
    try {
      await query(iq("set", content));
    } catch (error) {
      const code = queryError(error);
      if (code !== null) throw new PasskeyRefused(`The network refused the passkey (error ${code}).`);
      throw new NetworkTimeout("The messaging network did not answer to the passkey.", { cause: error });
    }
  }

  async function sendPrologue(assertion: PasskeyAssertion): Promise<{ companion: Companion; isProven: boolean }> {
    const answer = await query(iq("get", { tag: "ref", attrs: {} })).catch((cause) => {
      throw new NetworkTimeout("The messaging network did not answer to the passkey.", { cause });
    });
    const companion = makeCompanion(Buffer.from(bytesIn(answer, "ref")).toString("utf8"), random);
    const { prologue } = companion;
    const proof = handoff !== null && clock.now() < handoff.until ? handoffProof(handoff.key, prologue) : null;
    await tell({
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

  async function complete(key: Uint8Array): Promise<void> {
    enter({ name: "completing" }, { afterMs: PHONE_MS, run: () => fail("The phone did not complete the link.") });
    events.asked(null);
    try {
      await tell({ tag: "encrypted_pairing_request", attrs: {}, content: pairingRequest(creds, key, random) });
    } catch (error) {
      fail(error instanceof Error ? error.message : "The link could not be completed.");
      throw error;
    }
  }

  return {
    async requested(notification) {
      enter({ name: "busy" });
      begunAt ||= clock.now();
      let request: Options;
      try {
        request = optionsIn(notification);
      } catch {
        request = await askForOptions();
      }
      await rotateSecret();
      log.info("the account asks for its passkey");
      require(request);
    },

    async continued(notification) {
      if (stage.name !== "signed") return log.warn("a passkey was continued that nobody signed with");
      const { companion, isProven } = stage;
      enter({ name: "busy" });
      const { key, code } = companion.meet(bytesIn(notification, "primary_ephemeral_identity"));
      await tell({ tag: "companion_nonce", attrs: {}, content: companion.nonce });
      if (isProven) return await complete(key);
      enter({ name: "confirm", key }, {
        afterMs: CONFIRM_MS,
        run: () => fail("Nobody confirmed the passkey's code in time."),
      });
      events.asked({ stage: "confirm", code, expiresAt: clock.now() + CONFIRM_MS });
    },

    async sign(assertion) {
      if (stage.name !== "required") throw new PasskeyNotRequested();
      const before = stage;
      if (challengeOf(assertion) !== before.options.challenge) {
        const refused = new PasskeyRefused("The passkey signed another challenge than the one that was asked for.");
        refusal = refused.message;
        require(before.options);
        throw refused;
      }
      enter({ name: "busy" });
      try {
        const signed = await sendPrologue(assertion);
        enter({ name: "signed", ...signed }, { afterMs: PHONE_MS, run: () => fail("The phone did not answer.") });
        refusal = null;
        events.asked(null);
      } catch (error) {
        if (error instanceof PasskeyRefused) {
          refusal = error.message;
          enter({ name: "busy" }, { afterMs: ASKED_AGAIN_MS, run: () => void renew() });
        } else require(before.options);
        throw error;
      }
    },

    async confirm() {
      if (stage.name !== "confirm") throw new PasskeyNotRequested();
      await complete(stage.key);
    },

    end: () => enter({ name: "idle" }),
  };
}

function iq(type: "get" | "set", content: BinaryNode): BinaryNode {
  return { tag: "iq", attrs: { to: S_WHATSAPP_NET, type, xmlns: "md" }, content: [content] };
}

/** Throws when there is no such child with bytes. */
function bytesIn(node: BinaryNode, tag: string): Uint8Array {
  const content = getBinaryNodeChild(node, tag)?.content;
  if (typeof content === "string") return Buffer.from(content);
  if (content instanceof Uint8Array) return content;
  throw new Error(`the network sent no ${tag}`);
}

function optionsIn(node: BinaryNode): Options {
  const options: Options | null = JSON.parse(Buffer.from(bytesIn(node, "passkey_request_options")).toString("utf8"));
  if (typeof options?.challenge !== "string") throw new Error("the network sent no challenge");
  return options;
}

/** The challenge that the browser signed, base64url; null where the client data make no sense. */
function challengeOf({ response }: PasskeyAssertion): string | null {
  try {
    const { challenge } = JSON.parse(Buffer.from(response.clientDataJSON, "base64url").toString("utf8"));
    return typeof challenge === "string" ? challenge : null;
  } catch {
    return null;
  }
}
