/** A companion that its phone has welcomed, without keys of its own. */
import { type Companion, type Endpoint, newCompanion } from "../../../src/sandbox/world/directory.ts";

export function testCompanion(endpoint: Endpoint): Companion {
  const companion = newCompanion(endpoint, {
    noisePublic: "",
    keyIndex: endpoint.device,
    identity: new Uint8Array(0),
    keys: {
      registrationId: 1,
      identityKey: new Uint8Array(32),
      signedPreKey: { id: 1, publicKey: new Uint8Array(32), signature: new Uint8Array(64) },
      preKeys: [],
    },
    linkedAt: 0,
  });
  return Object.assign(companion, { welcomed: true });
}
