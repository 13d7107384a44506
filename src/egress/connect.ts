/** Opens plain or TLS connections to vetted addresses. */
import { hostOf, portOf } from "../base/addresses.ts";
import type { Deadline } from "./deadline.ts";
import { EgressError, reasonOf } from "./egress_error.ts";
import type { ByteConnection } from "./http1.ts";
import { ReusableConnection } from "./idle_connections.ts";

/** How many addresses of a name are tried in turn, as long as nothing has been sent. */
const MAX_ADDRESSES = 3;

/** Connects to the first vetted address that answers. For https the certificate must match the host. */
export async function connect(
  url: URL,
  { addresses, caCerts, deadline }: { addresses: readonly string[]; caCerts: string[]; deadline: Deadline },
): Promise<ReusableConnection> {
  const port = portOf(url);
  let failure: unknown;
  for (const address of addresses.slice(0, MAX_ADDRESSES)) {
    try {
      const connecting = Deno.connect({ hostname: address, port });
      const plain = await deadline.race(connecting, (late) => late.close());
      const connection = url.protocol === "http:"
        ? plain
        : await secure(plain, { hostname: hostOf(url), caCerts, deadline });
      return new ReusableConnection(connection, address);
    } catch (error) {
      if (error instanceof EgressError) throw error;
      failure = error;
    }
  }
  const refused = failure instanceof Deno.errors.ConnectionRefused;
  throw new EgressError("unreachable", refused ? "the connection was refused" : "the host cannot be reached", {
    cause: failure,
  });
}

async function secure(
  plain: Deno.TcpConn,
  { hostname, caCerts, deadline }: { hostname: string; caCerts: string[]; deadline: Deadline },
): Promise<ByteConnection> {
  const secured = await Deno.startTls(plain, { hostname, caCerts }).catch((error) => {
    // A name that is valid in a URL but not for a certificate: the connection is still open.
    closeQuietly(plain);
    throw tlsFailed(error);
  });
  try {
    await deadline.race(secured.handshake());
    return secured;
  } catch (error) {
    secured.close();
    throw error instanceof EgressError ? error : tlsFailed(error);
  }
}

function tlsFailed(error: unknown): EgressError {
  return new EgressError("tls_failed", `the TLS handshake failed: ${reasonOf(error)}`, { cause: error });
}

function closeQuietly(connection: ByteConnection): void {
  try {
    connection.close();
  } catch {
    // Already taken over or closed.
  }
}
