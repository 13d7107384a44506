/** Linking a line, as its owner sees it: the QR or code to show, and the steps of the account's passkey. */
import { notFound } from "../errors.ts";
import {
  type Connection,
  type PasskeyAssertion,
  PasskeyNotRequested,
  PasskeyRefused,
  type PasskeyRequest,
} from "../whatsapp/connection.ts";
import type { AccountLines } from "./account_lines.ts";
import type { Line, LineStatus } from "./line.ts";
import { qrDataUrl } from "./line_row.ts";
import type { LiveLines } from "./live.ts";

/** The state of linking: the spec's "Session QR / pairing result". */
interface LinkingState {
  status: LineStatus;
  qr: string | null;
  pairingCode: string | null;
}

interface LinkingDeps {
  lines: Pick<AccountLines, "row" | "used">;
  live: Pick<LiveLines, "present">;
  /** Waits until `done` is true of the line, for a few seconds at most. */
  until: (last: Line, done: (now: Line) => boolean) => Promise<Line>;
  /** Begins a new round of linking. */
  connect: (accountId: string, lineId: string) => Promise<Line>;
}

export function makeLinking({ lines, live, until, connect }: LinkingDeps) {
  /** Runs one passkey step, and waits until the line's row shows the next step, or why this one was refused. */
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
     * Returns what the owner needs to link the line. Begins a new round if the last one expired unused, but not if
     * WhatsApp refused it. `qr` is a data URL of a PNG. Throws Problem not_found.
     */
    async linking(accountId: string, lineId: string): Promise<LinkingState> {
      let { value: line } = await lines.row(accountId, lineId);
      const ranOut = line.status === "disconnected" && !line.linked && !line.refused && line.wanted === "connected";
      if (ranOut) line = await connect(accountId, lineId);
      const { status, qr, pairingCode } = line;
      return { status, qr: qr === null ? null : await qrDataUrl(qr), pairingCode };
    },

    /** Returns the pending passkey request. Throws Problem not_found if there is none. */
    async passkey(accountId: string, lineId: string): Promise<PasskeyRequest> {
      const { value: { passkey } } = await lines.row(accountId, lineId);
      if (!passkey) throw notFound("passkey request");
      return passkey;
    },

    /**
     * Submits the signed challenge; resolves to the line once the network has accepted it. Throws Problem not_found,
     * PasskeyNotRequested, PasskeyRefused, NetworkTimeout.
     */
    signPasskey: (accountId: string, lineId: string, assertion: PasskeyAssertion): Promise<Line> =>
      passkeyStep(accountId, lineId, (connection) => connection.signPasskey(assertion)),

    /** Confirms that the owner saw the same code on the phone. Resolves and throws as `signPasskey` does. */
    confirmPasskey: (accountId: string, lineId: string): Promise<Line> =>
      passkeyStep(accountId, lineId, (connection) => connection.confirmPasskey()),
  };
}
