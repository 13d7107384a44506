/** What a connection reported, in order, with promises in place of polling. */
import { GIVE_UP_AFTER_MS } from "../../src/cli/client.ts";
import type { Incoming, Notice, Receipt } from "../../src/whatsapp/incoming.ts";
import type {
  CloseReason,
  ConnectionEvents,
  OwnIdentity,
  PasskeyRequest,
  Restriction,
} from "../../src/whatsapp/connection.ts";

export type Reported =
  | { event: "qr"; text: string }
  | { event: "pairingCode"; code: string }
  | { event: "passkey"; request: PasskeyRequest | null }
  | { event: "restricted"; restriction: Restriction | null }
  | { event: "linked"; identity: OwnIdentity }
  | { event: "open"; identity: OwnIdentity }
  | { event: "closed"; reason: CloseReason }
  | { event: "message"; message: Incoming }
  | { event: "receipt"; receipt: Receipt }
  | { event: "notice"; notice: Notice };

export type ReportedAs<E extends Reported["event"]> = Extract<Reported, { event: E }>;

export class LineEvents implements ConnectionEvents {
  readonly all: Reported[] = [];
  /** Decides what becomes of a message; the default takes it. */
  onMessage: (message: Incoming) => Promise<void> = () => Promise.resolve();
  /** The same for what happens beside messages. */
  onNotice: (notice: Notice) => Promise<void> = () => Promise.resolve();
  /** Called with each QR text, as a phone's owner would look at the screen. */
  onQr: (text: string) => void = () => {};
  #watchers = new Set<() => void>();

  qr(text: string): void {
    this.#add({ event: "qr", text });
    this.onQr(text);
  }
  pairingCode(code: string): void {
    this.#add({ event: "pairingCode", code });
  }
  passkey(request: PasskeyRequest | null): void {
    this.#add({ event: "passkey", request });
  }
  degraded(): void {}

  restricted(restriction: Restriction | null): void {
    this.#add({ event: "restricted", restriction });
  }
  linked(identity: OwnIdentity): void {
    this.#add({ event: "linked", identity });
  }
  open(identity: OwnIdentity): void {
    this.#add({ event: "open", identity });
  }
  closed(reason: CloseReason): void {
    this.#add({ event: "closed", reason });
  }
  async message(message: Incoming): Promise<boolean> {
    this.#add({ event: "message", message });
    await this.onMessage(message);
    return false;
  }
  async notice(notice: Notice): Promise<void> {
    this.#add({ event: "notice", notice });
    await this.onNotice(notice);
  }
  receipt(receipt: Receipt): Promise<void> {
    this.#add({ event: "receipt", receipt });
    return Promise.resolve();
  }

  of<E extends Reported["event"]>(event: E): ReportedAs<E>[] {
    return this.all.filter((reported): reported is ReportedAs<E> => reported.event === event);
  }

  /** The first report of that kind that fits, waiting for it if it has not come yet. */
  until<E extends Reported["event"]>(
    event: E,
    fits: (reported: ReportedAs<E>) => boolean = () => true,
  ): Promise<ReportedAs<E>> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = this.of(event).find(fits);
        if (!found) return;
        this.#watchers.delete(look);
        clearTimeout(timer);
        resolve(found);
      };
      const timer = setTimeout(() => {
        this.#watchers.delete(look);
        reject(
          new Error(`no such "${event}" came; reported: ${this.all.map(({ event }) => event).join(", ") || "nothing"}`),
        );
      }, GIVE_UP_AFTER_MS);
      this.#watchers.add(look);
      look();
    });
  }

  #add(reported: Reported): void {
    this.all.push(reported);
    for (const look of [...this.#watchers]) look();
  }
}
