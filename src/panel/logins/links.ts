/**
 * One-time links: to create an operator's login, to join an account, to link one line. Invalid once used or expired, or
 * when whoever made them was removed.
 */
import type { Runtime } from "../../runtime.ts";
import { Change, type Kv, type Row } from "../../store/kv.ts";
import { Refusal } from "../refusal.ts";
import { type Invitation, panelKeys, type Person, type Purpose } from "../rows.ts";
import type { People } from "./people.ts";
import { hashToken, makeToken } from "./secrets.ts";

const HOUR_MS = 60 * 60_000;

const LASTS_MS: Readonly<Record<Purpose["kind"], number>> = {
  operator: HOUR_MS,
  member: 7 * 24 * HOUR_MS,
  line: 24 * HOUR_MS,
};

export type Links = ReturnType<typeof makeLinks>;

export function makeLinks({ kv, runtime }: { kv: Kv; runtime: Pick<Runtime, "clock" | "random"> }) {
  return {
    /** The token, which goes behind the `#` of the link, where no server and no log sees it. */
    async make(purpose: Purpose, by?: Person): Promise<{ token: string; expiresAt: number }> {
      const token = makeToken(runtime.random);
      const createdAt = runtime.clock.now();
      const expiresAt = createdAt + LASTS_MS[purpose.kind];
      const invitation = { ...purpose, ...(by && { by: by.id }), createdAt, expiresAt };
      await kv.commit(new Change().set(panelKeys.link(hashToken(token)), invitation));
      return { token, expiresAt };
    },

    /** Throws Refusal link_dead, also for a link of another kind. */
    async find<K extends Purpose["kind"]>(token: string, ...kinds: K[]): Promise<Row<Invitation & { kind: K }>> {
      const slot = await kv.get(panelKeys.link(hashToken(token)));
      const { value } = slot;
      if (value === null || !kinds.some((kind) => kind === value.kind) || runtime.clock.now() >= value.expiresAt) {
        throw deadLink();
      }
      // Nobody comes back by a link that they made before they were removed.
      if (value.by !== undefined && (await kv.get(panelKeys.person(value.by))).value === null) throw deadLink();
      return slot as Row<Invitation & { kind: K }>;
    },

    /** Marks the link as used. */
    use: async (token: string) => void await kv.commit(new Change().delete(panelKeys.link(hashToken(token)))),
  };
}

export const deadLink = () =>
  new Refusal("link_dead", "This link was used already, or its time is over. Ask for another.");

/** The URL to hand out. */
export function linkUrl(panelUrl: string, { kind }: Pick<Purpose, "kind">, token: string): string {
  return `${panelUrl}/${kind === "line" ? "link-line" : "welcome"}#${token}`;
}

/** While there is no operator: a new link that makes one; else null. */
export async function firstRunLink(
  { people, links, panelUrl }: { people: Pick<People, "hasOperator">; links: Links; panelUrl: string },
): Promise<string | null> {
  if (await people.hasOperator()) return null;
  return linkUrl(panelUrl, { kind: "operator" }, (await links.make({ kind: "operator" })).token);
}
