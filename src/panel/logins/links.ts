/**
 * One-time links: to create an operator's login, to join an account, or to link one line. A link is invalid once it is
 * used or expired, or when the person who made it has been removed.
 */
import { notFound } from "../../errors.ts";
import { Windows } from "../../base/windows.ts";
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

/** Links that one person may make an hour: each is a row, and another in the audit log. */
const MOST_AN_HOUR = 30;

type Links = ReturnType<typeof makeLinks>;

export function makeLinks({ kv, runtime }: { kv: Kv; runtime: Pick<Runtime, "clock" | "random"> }) {
  const made = new Windows(runtime.clock, HOUR_MS);
  return {
    /**
     * Creates a link. Resolves to its token, which goes after the `#` of the URL, where no server and no log sees it.
     * Throws Refusal too_many_attempts if the person has made too many.
     */
    async make(purpose: Purpose, by?: Person): Promise<{ token: string; expiresAt: number }> {
      if (by && made.add(by.id).count > MOST_AN_HOUR) {
        throw new Refusal("too_many_attempts", `You can make ${MOST_AN_HOUR} links an hour.`, {
          retryAfterSeconds: made.secondsLeft(by.id),
        });
      }
      const token = makeToken(runtime.random);
      const createdAt = runtime.clock.now();
      const expiresAt = createdAt + LASTS_MS[purpose.kind];
      const invitation = { ...purpose, ...(by && { by: by.id }), createdAt, expiresAt };
      await kv.commit(new Change().set(panelKeys.link(hashToken(token)), invitation));
      return { token, expiresAt };
    },

    /** Finds a valid link. Throws Refusal link_dead if there is none, or only one of another kind. */
    async find<K extends Purpose["kind"]>(token: string, ...kinds: K[]): Promise<Row<Invitation & { kind: K }>> {
      const slot = await kv.get(panelKeys.link(hashToken(token)));
      const { value } = slot;
      if (value === null || !kinds.some((kind) => kind === value.kind) || runtime.clock.now() >= value.expiresAt) {
        throw deadLink();
      }
      // Removed people must not come back by a link that they made before.
      if (value.by !== undefined && (await kv.get(panelKeys.person(value.by))).value === null) throw deadLink();
      return slot as Row<Invitation & { kind: K }>;
    },

    /** Lists the invitations that are still open: to the account, or of operators if null. */
    async invitations(accountId: string | null) {
      const found: (Invited & { id: string })[] = [];
      for await (const { key, value } of kv.list({ prefix: panelKeys.links() })) {
        if (isInvitation(value, accountId) && runtime.clock.now() < value.expiresAt) {
          found.push({ ...value, id: String(key.at(-1)) });
        }
      }
      return found.sort((a, b) => b.createdAt - a.createdAt);
    },

    /** Invalidates an invitation. Throws Problem not_found. */
    async withdraw(id: string, accountId: string | null): Promise<void> {
      const { key, value } = await kv.get(panelKeys.link(id));
      if (value === null || !isInvitation(value, accountId)) throw notFound("invitation");
      await kv.commit(new Change().delete(key));
    },

    /** Invalidates the link, because it has been used. */
    use: async (token: string) => void await kv.commit(new Change().delete(panelKeys.link(hashToken(token)))),
  };
}

type Invited = Extract<Invitation, { kind: "operator" | "member" }>;

/** Whether the link is an invitation to the account, or of an operator if null. */
function isInvitation(link: Invitation, accountId: string | null): link is Invited {
  return link.kind === "member" ? link.accountId === accountId : link.kind === "operator" && accountId === null;
}

export const deadLink = () =>
  new Refusal("link_dead", "This link has expired or has already been used. Ask for a new one.");

/** Returns the URL of a link. */
export function linkUrl(panelUrl: string, { kind }: Pick<Purpose, "kind">, token: string): string {
  return `${panelUrl}/${kind === "line" ? "link-line" : "welcome"}#${token}`;
}

/** Creates a link for the first operator; resolves to null if there is an operator already. */
export async function firstRunLink(
  { people, links, panelUrl }: { people: Pick<People, "hasOperator">; links: Links; panelUrl: string },
): Promise<string | null> {
  if (await people.hasOperator()) return null;
  return linkUrl(panelUrl, { kind: "operator" }, (await links.make({ kind: "operator" })).token);
}
