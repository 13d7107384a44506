/** News that one process has and others need, over the bell (promise 7): nothing depends on a ring that is lost. */
import type { EventLog } from "../event/log.ts";
import type { Lookups } from "../line/lookups.ts";
import type { Bell } from "../store/bell.ts";

const EVENTS_TOPIC = "events/";
const FORGET_TOPIC = "forget/";

/** Who follows an account's events hears of those that other processes write. */
export function relayedEvents(events: EventLog, bell: Bell): EventLog {
  return {
    ...events,
    committed: (accountId) => bell.ring(EVENTS_TOPIC + accountId),
    subscribe: (accountId, wake) => bell.hear(EVENTS_TOPIC + accountId, wake),
  };
}

/** What a line's owner finds changed is forgotten everywhere. */
export function relayedLookups(lookups: Lookups, bell: Bell): Lookups {
  bell.hear(FORGET_TOPIC, (topic) => {
    const [lineId = "", ...about] = topic.slice(FORGET_TOPIC.length).split(" ");
    lookups.forget(lineId, about.join(" "));
  });
  return {
    answer: (question) => lookups.answer(question),
    forget(lineId, about) {
      lookups.forget(lineId, about);
      bell.ring(`${FORGET_TOPIC}${lineId} ${about}`);
    },
  };
}
