/** The product's runner of a line on a fake network, without the session that is around it. */
import { chatsOn } from "./chats.ts";
import type { Plan } from "../../src/account/plan.ts";
import { Runner } from "../../src/line/runner/runner.ts";
import { Recorder } from "../../src/message/record.ts";
import type { Runtime } from "../../src/runtime.ts";
import type { Bell } from "../../src/store/bell.ts";
import type { Kv } from "../../src/store/kv.ts";
import type { FakeNetwork } from "./fake_network.ts";
import { testEvents } from "./bell.ts";

interface Ground {
  kv: Kv;
  runtime: Runtime;
  bell: Bell;
  network: FakeNetwork;
}

const DEAF = { open() {}, closed() {} } as unknown as Parameters<FakeNetwork["open"]>[1];

/** Starts runners of lines that are linked and online. */
export function makeRunners({ kv, runtime, bell, network }: Ground) {
  const files = { onDisk: () => Promise.reject(new Error("no files here")), remove: () => Promise.resolve() };
  const events = testEvents(kv, runtime);
  const recorder = new Recorder({
    kv,
    chats: chatsOn(kv),
    runtime,
    events,
    files,
    sessionName: () => Promise.resolve(""),
  });
  return async (line: { lineId: string; accountId: string; plan: Plan }): Promise<Runner> => {
    const { lineId, accountId } = line;
    const deps = {
      kv,
      runtime,
      bell,
      chats: chatsOn(kv),
      recorder,
      files,
      fetchAttachment: () => Promise.resolve(),
      fetchPreview: () => Promise.resolve(null),
      plan: () => Promise.resolve(line.plan),
    };
    const runner = new Runner(deps, { lineId, accountId, suspect: () => {} });
    network.linked.add(lineId);
    const connection = await network.open({ lineId } as Parameters<FakeNetwork["open"]>[0], DEAF);
    await runner.start();
    runner.use({ kind: "open", connection });
    return runner;
  };
}
