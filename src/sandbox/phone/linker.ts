/** A phone's owner links companions: scans their QR, types their code, confirms a link with a passkey. */
import { notFound } from "../../errors.ts";
import type { CodeAnswer, LinkAnswer, PasskeyState } from "../world/linking.ts";
import type { Passkey } from "./authenticator.ts";
import type { PhoneContext } from "./context.ts";
import { type Companion, readQr, signIdentity } from "./linking.ts";
import { beginCodeExchange, readCode } from "./pairing_code.ts";
import { PasskeyExchange } from "./passkey_exchange.ts";

export class Linker {
  /** Null: the account's links demand none. */
  readonly passkey: Passkey | null;
  readonly #phone: PhoneContext;
  /** Secrets of QRs that the network wants to be shown anew; each is valid once. */
  readonly #spentSecrets = new Set<string>();
  #companions = 0;
  #exchange: PasskeyExchange | null = null;

  constructor(phone: PhoneContext, passkey: Passkey | null) {
    this.#phone = phone;
    this.passkey = passkey;
  }

  /** Throws Problem validation_failed for what is no QR. */
  scan(qr: string): LinkAnswer {
    const companion = readQr(qr);
    return this.#link(companion.ref, companion);
  }

  async enterCode(typed: string): Promise<CodeAnswer> {
    const code = readCode(typed);
    const { runtime, uplink, self, keys } = this.#phone;
    const request = uplink.codeRequest(self);
    if (!request) return { kind: "no_request" };
    const exchange = await beginCodeExchange(keys, request, { code, random: runtime.random });
    const answer = await uplink.answerCode(self, request.ref, exchange.hello);
    const companion = answer && exchange.finish(answer);
    return companion ? this.#link(request.ref, companion) : { kind: "wrong_code" };
  }

  #link(ref: string, companion: Companion): LinkAnswer {
    const { runtime, uplink, self } = this.#phone;
    const secret = companion.advSecret.toString();
    if (this.#spentSecrets.has(secret)) return { kind: "refresh" };
    const exchange = new PasskeyExchange({
      companion,
      random: runtime.random,
      sign: (revealed) => {
        const signed = this.#sign(revealed);
        this.#companions++;
        return signed;
      },
      onAsk: () => this.#exchange = exchange,
    });
    const answer = uplink.acceptQr(self, ref, this.#sign(companion), exchange);
    if (answer.kind === "linked") this.#companions++;
    if (answer.kind === "refresh") this.#spentSecrets.add(secret);
    return answer;
  }

  #sign(companion: Companion): Uint8Array {
    const { runtime, keys } = this.#phone;
    return signIdentity(keys, companion, { keyIndex: this.#companions + 1, now: runtime.clock.now() });
  }

  /** The link with a passkey that is under way, or null. */
  passkeyState(): PasskeyState | null {
    return this.#exchange?.state ?? null;
  }

  /** Throws Problem not_found when no code is shown. */
  confirmPasskey(): void {
    if (!this.#exchange?.confirm()) throw notFound("code to confirm on this phone");
  }

  /** Throws Problem not_found. */
  ownPasskey(): Passkey {
    if (!this.passkey) throw notFound("passkey on this phone");
    return this.passkey;
  }
}
