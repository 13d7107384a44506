/**
 * The settings of chats that an account's devices share. Large ones lie in files, and Baileys 7.0.0-rc14
 * fetches those by itself: past the proxy of the line. Nothing here uses such settings, so behind a proxy the files stay
 * where they are, and only what comes inline is taken.
 */
import { type BinaryNode, getBinaryNodeChild, getBinaryNodeChildren, proto } from "@whiskeysockets/baileys";

/** Takes the files out of an answer about settings. To be called before the library reads it. */
export function leaveFiles({ tag, content }: BinaryNode): void {
  if (tag !== "iq" || !Array.isArray(content)) return;
  const collections = content.flatMap((child) =>
    child.tag === "sync" ? getBinaryNodeChildren(child, "collection") : []
  );
  for (const collection of collections) {
    const patches = getBinaryNodeChildren(getBinaryNodeChild(collection, "patches") ?? collection, "patch");
    if (!getBinaryNodeChild(collection, "snapshot") && patches.every(isInline)) continue;
    // Asked for the rest, the network would give the same again.
    delete collection.attrs.has_more_patches;
    collection.content = [];
  }
}

function isInline({ content }: BinaryNode): boolean {
  try {
    return !(content instanceof Uint8Array) || !proto.SyncdPatch.decode(content).externalMutations;
  } catch {
    return true; // the library says what is wrong with it
  }
}
