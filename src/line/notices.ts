/** Keeps calls, group changes and presence as events, each exactly once, in ONE commit (promise 4). */
import type { EventBody } from "../event/event.ts";
import type { EventLog } from "../event/log.ts";
import type { Clock } from "../runtime.ts";
import { Change, type Kv } from "../store/kv.ts";
import type { GroupNow, Notice } from "../whatsapp/incoming.ts";
import { lineKeys } from "./rows.ts";

interface NoticeDeps {
  kv: Kv;
  clock: Clock;
  events: EventLog;
  sessionName: (lineId: string) => Promise<string>;
}

/** Appends the event of a notice, unless it was kept before. Throws StoreError. */
export async function keepNotice(
  { kv, clock, events, sessionName }: NoticeDeps,
  line: { id: string; accountId: string },
  notice: Notice,
): Promise<void> {
  const { id: sessionId, accountId } = line;
  const change = new Change();
  if (notice.id !== null) {
    const seen = await kv.get(lineKeys.seen(sessionId, notice.chat, notice.id));
    if (seen.value !== null) return;
    change.check(seen).set(lineKeys.seen(sessionId, notice.chat, notice.id), { at: clock.now(), from: "me" });
  }
  events.append(change, { accountId, sessionId, sessionName: await sessionName(sessionId), ...bodyOf(notice) });
  if (await kv.commit(change)) events.committed(accountId);
}

function bodyOf(notice: Notice): EventBody {
  const { chat } = notice;
  switch (notice.kind) {
    case "call": {
      const { callId, number, video } = notice;
      return { event: "call.received", data: { callId, chat, number, video } };
    }
    case "group":
      return { event: "group.updated", data: { group: shown(notice.group) } };
    case "members": {
      const { action, participants } = notice;
      return { event: "group.participants", data: { group: shown(notice.group), action, participants } };
    }
    case "presence":
      return { event: "presence.updated", data: { chat, number: notice.number, state: notice.state } };
  }
}

/** Returns the group as the API shows it. */
function shown({ createdAt, ...group }: GroupNow) {
  return { ...group, ...(createdAt === undefined ? {} : { createdAt: new Date(createdAt).toISOString() }) };
}
