/** The contract of targets on a URL: a real receiver on loopback, and time that moves when told. */
import { makeSafeFetch } from "../../src/egress/safe_fetch.ts";
import { readAllowList } from "../../src/egress/vetting.ts";
import { urlTarget } from "../../src/webhook/url_target.ts";
import { freePort } from "../support/free_port.ts";
import { type Answer, answering, Receiver } from "../support/receiver.ts";
import { settle, testRuntime } from "../support/runtime.ts";
import { type Reaction, targetContract } from "./target_contract.ts";

const TOKEN = "of this target";
const REACTIONS: Readonly<Record<Reaction, Answer>> = {
  accepts: answering(204),
  refuses: answering(500),
  "is busy": answering(429, { "retry-after": "999999" }),
  "is gone": answering(410),
  refers: answering(307, { location: "/elsewhere" }),
  hangs: () => {},
};

targetContract({
  name: "a URL",
  async open() {
    const runtime = testRuntime();
    const receiver = await Receiver.start(REACTIONS.accepts);
    const safeFetch = makeSafeFetch({ clock: runtime.clock, allow: readAllowList(["127.0.0.0/8"]) });
    let reaction: Reaction = "accepts";
    receiver.answer = (response, received, number) => {
      const asked = new URL(received.path, receiver.url).searchParams;
      const knows = asked.get("hub.verify_token") === TOKEN && reaction === "accepts";
      if (!asked.has("hub.challenge") || !knows) return REACTIONS[reaction](response, received, number);
      response.end(asked.get("hub.challenge"));
    };
    return {
      target: urlTarget({ safeFetch, runtime }),
      url: receiver.url,
      deserted: `http://127.0.0.1:${await freePort()}/`,
      forbidden: ["http://192.0.2.1/", "https://10.0.0.1/", "ftp://127.0.0.1/"],
      token: TOKEN,
      react: (next) => void (reaction = next),
      arrived: () => receiver.requests,
      async after(ms, outcome) {
        let isOver = false;
        const over = outcome.finally(() => isOver = true);
        // Connecting takes real time, in which the test's clock stands still.
        while (!isOver) await Promise.race([over, runtime.clock.advance(ms).then(() => settle())]);
        return await over;
      },
      [Symbol.asyncDispose]: () => receiver.close(),
    };
  },
});
