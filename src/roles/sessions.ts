/** The parts of line sessions. `worker.ts` loads them with the first line. */
import { DEFAULT_PLANS } from "../account/plan.ts";
import { ChatIndex } from "../chat/chat_index.ts";
import { LineSession } from "../line/line_session.ts";
import type { MakeSession } from "../line/supervisor.ts";
import { makeMediaIngest } from "../media/ingest.ts";
import { makeFetchAttachment } from "../message/fetch_attachment.ts";
import { makeFetchPreview } from "../message/link_preview.ts";
import type { Network } from "../whatsapp/network.ts";
import type { Ground } from "./ground.ts";
import { optOutsOn, recorderOn } from "./recording.ts";

export function makeSessions(ground: Ground, network: Network): MakeSession {
  const { runtime, bell, media: files, links, events, lookups, safeFetch, names, queueChanged } = ground;
  const { callers, seal } = ground.data;
  const shared = {
    runtime,
    bell,
    files,
    fetchPreview: makeFetchPreview({ safeFetch, clock: runtime.clock }),
    sessionName: names.of,
    plan: async (accountId: string) => (await callers.of(accountId))?.plan ?? DEFAULT_PLANS[0]!,
    optOuts: optOutsOn(ground, network),
    events,
    media: makeMediaIngest({ media: files, links, runtime }),
    seal,
    lookups,
    network,
    queueChanged,
  };
  return (kv, line, changed) => {
    const recorder = recorderOn(ground, { kv, network });
    const fetchAttachment = makeFetchAttachment({ kv, runtime, safeFetch, files, recorder });
    return new LineSession(
      { ...shared, kv, chats: new ChatIndex({ kv, network }), recorder, fetchAttachment },
      line,
      changed,
    );
  };
}
