/** The WhatsApp Web version of this release. Written by `scripts/web_version.ts`. */
export const PINNED_VERSION = { version: "2.3000.1048032155", releasedAt: "2026-09-21T19:16:29.762Z" };
