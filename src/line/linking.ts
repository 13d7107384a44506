/** Linking a line, as its owner sees it: the QR or the code to show, and the steps of the account's passkey. */
import { notFound } from "../errors.ts";
import type { Connection } from "../whatsapp/connection.ts";
import {
  type PasskeyAssertion,
  PasskeyNotRequested,
  PasskeyRefused,
  type PasskeyRequest,
} from "../whatsapp/passkey.ts";
import type { AccountLines } from "./account_lines.ts";
import type { Line, LineStatus } from "./line.ts";
import { qrDataUrl } from "./line_row.ts";
import type { LiveLines } from "./live.ts";
import type { Until } from "./reached.ts";

/** How far linking is: the spec's "Session QR / pairing result". */
interface LinkingState {
  status: LineStatus;
  qr: string | null;
  pairingCode: string | null;
}

interface LinkingDeps {
  lines: Pick<AccountLines, "row" | "used">;
  live: Pick<LiveLines, "present">;
  until: Until;
  /** Begins a new round. */
  connect: (accountId: string, lineId: string) => Promise<Line>;
}

export type Linking = ReturnType<typeof makeLinking>;

export function makeLinking({ lines, live, until, connect }: LinkingDeps) {
  /** One step of the passkey, and the line as it is then: with the next step, or with why this one was refused. */
  async function passkeyStep(
    accountId: string,
    lineId: string,
    step: (connection: Pick<Connection, "signPasskey" | "confirmPasskey">) => Promise<void>,
  ): Promise<Line> {
    const { value: before } = await lines.row(accountId, lineId);
    const connection = live.present(lineId);
    if (!before.passkey || !connection) throw new PasskeyNotRequested();
    const written = () => until(before, ({ passkey }) => passkey?.expiresAt !== before.passkey?.expiresAt);
    try {
      await step(connection);
    } catch (error) {
      if (error instanceof PasskeyRefused) await written();
      throw error;
    }
    return await lines.used(await written());
  }

  return {
    /**
     * What the owner needs to link the line now; asking begins a new round when the last one ran out unused, but not when
     * WhatsApp refused it. `qr` is a data URL of a PNG. Throws Problem not_found.
     */
    async linking(accountId: string, lineId: string): Promise<LinkingState> {
      let { value: line } = await lines.row(accountId, lineId);
      const ranOut = line.status === "disconnected" && !line.linked && !line.refused && line.wanted === "connected";
      if (ranOut) line = await connect(accountId, lineId);
      const { status, qr, pairingCode } = line;
      return { status, qr: qr === null ? null : await qrDataUrl(qr), pairingCode };
    },

    /** What the account's passkey is asked for now. Throws not_found when it is not. */
    async passkey(accountId: string, lineId: string): Promise<PasskeyRequest> {
      const { value: { passkey } } = await lines.row(accountId, lineId);
      if (!passkey) throw notFound("passkey request");
      return passkey;
    },

    /**
     * Resolves to the line once the network took the signed challenge. Throws not_found, PasskeyNotRequested,
     * PasskeyRefused, NetworkTimeout.
     */
    signPasskey: (accountId: string, lineId: string, assertion: PasskeyAssertion): Promise<Line> =>
      passkeyStep(accountId, lineId, (connection) => connection.signPasskey(assertion)),

    /** The owner saw the same code on the phone. As signPasskey. */
    confirmPasskey: (accountId: string, lineId: string): Promise<Line> =>
      passkeyStep(accountId, lineId, (connection) => connection.confirmPasskey()),
  };
}
