import assert from "node:assert/strict";
import { MESSAGE_STATUSES, type MessageStatus, NEXT_STATUS } from "../../../../src/message/message.ts";
import { EndedStretches, moveStatus, StatusReader } from "../../../../src/message/history/status_index.ts";
import { clip, containerOf, newestIn, noNumbers, type NumberSet } from "../../../../src/message/history/number_set.ts";
import { openDenoKv } from "../../../../src/store/deno_kv/deno_kv.ts";
import { Change, type Kv } from "../../../../src/store/kv.ts";
import { seededRandom, testRuntime } from "../../../support/runtime.ts";

/** Oldest first. */
const allIn = (set: NumberSet) => newestIn(set, { skip: 0, limit: Infinity }).reverse();

const ACCOUNT = "acc_1";

/** An index with what it should say, told by a plain list of statuses. */
class Model {
  readonly statuses: MessageStatus[];
  readonly kv: Kv;
  readonly ended = new EndedStretches();

  constructor(kv: Kv, messages: number) {
    this.kv = kv;
    this.statuses = new Array<MessageStatus>(messages).fill("queued");
  }

  /** Moves messages, all in as few commits as fit. */
  async move(moves: { historyNumber: number; to: MessageStatus }[]): Promise<void> {
    for (let i = 0; i < moves.length; i += 200) {
      const change = new Change();
      for (const { historyNumber, to } of moves.slice(i, i + 200)) {
        const from = this.statuses[historyNumber - 1]!;
        moveStatus(change, { accountId: ACCOUNT, historyNumber }, { from, to });
        this.statuses[historyNumber - 1] = to;
      }
      await this.kv.commit(change);
    }
  }

  numbers(status: MessageStatus): number[] {
    return this.statuses.flatMap((found, i) => found === status ? [i + 1] : []);
  }

  reader(status: MessageStatus): StatusReader {
    return new StatusReader(this, { accountId: ACCOUNT, status, messages: this.statuses.length });
  }
}

async function withModel(messages: number, run: (model: Model) => Promise<void>): Promise<void> {
  const kv = await openDenoKv(":memory:", { runtime: testRuntime() });
  try {
    await run(new Model(kv, messages));
  } finally {
    kv.close();
  }
}

/** Compares ranks at random places and stretches of random ranks with the model. */
async function agree(model: Model, random: ReturnType<typeof seededRandom>): Promise<void> {
  for (const status of MESSAGE_STATUSES) {
    const numbers = model.numbers(status);
    for (const place of [0, model.statuses.length, ...times(5, () => random.between(0, model.statuses.length))]) {
      const expected = numbers.filter((number) => number <= place).length;
      assert.equal(await model.reader(status).rank(place), expected, `rank of ${status} at ${place}`);
    }
    const container = random.between(0, containerOf(model.statuses.length));
    const bits = noNumbers().fill(0xffffffff);
    clip(bits, container, { first: 1, last: model.statuses.length });
    await model.reader(status).keep({ container, bits });
    const within = numbers.filter((number) => containerOf(number) === container);
    assert.deepEqual(allIn({ container, bits }), within, `${status} in container ${container}`);
    for (let i = 0; i < 5; i++) {
      const first = random.between(1, numbers.length + 1);
      const last = first + random.between(-1, 60);
      const found = await model.reader(status).select(first, last);
      assert.deepEqual(found, numbers.slice(first - 1, Math.max(0, last)), `${status} ranked ${first} to ${last}`);
    }
  }
}

function times<T>(count: number, make: () => T): T[] {
  return Array.from({ length: count }, make);
}

for (const messages of [1, 29, 30, 31, 1_920, 1_921, 7_000]) {
  Deno.test(`the index agrees with a plain list of ${messages} statuses through random moves`, () =>
    withModel(messages, async (model) => {
      const random = seededRandom(messages);
      await agree(model, random);
      for (let round = 0; round < 6; round++) {
        // One move a message and commit: a move rests on the status that the one before left.
        const chosen = new Set(times(Math.ceil(messages / 3), () => random.between(1, messages)));
        await model.move([...chosen].flatMap((historyNumber) => {
          const next = NEXT_STATUS[model.statuses[historyNumber - 1]!];
          return next.length ? [{ historyNumber, to: next[random.between(0, next.length - 1)]! }] : [];
        }));
        await agree(model, random);
      }
    }));
}

Deno.test("the index agrees with a plain list where few of 400,000 messages have a status", () =>
  withModel(400_000, async (model) => {
    const random = seededRandom(4);
    const chosen = new Set([1, 122_880, 122_881, 245_760, 400_000, ...times(200, () => random.between(1, 400_000))]);
    await model.move([...chosen].map((historyNumber, i) => ({ historyNumber, to: i % 2 ? "processing" : "failed" })));
    await agree(model, random);
  }));

Deno.test("messages that were accepted while a query reads do not disturb it", () =>
  withModel(40, async (model) => {
    await model.move([{ historyNumber: 3, to: "processing" }, { historyNumber: 39, to: "processing" }]);
    const earlier = new StatusReader(model, { accountId: ACCOUNT, status: "processing", messages: 38 });
    assert.deepEqual(await earlier.select(1, 10), [3]);
  }));

Deno.test("stretches whose messages have all ended are read once, others every time", () =>
  withModel(3 * 1_920, async (model) => {
    const all = model.statuses.map((_, i) => ({ historyNumber: i + 1 }));
    await model.move(all.map((message) => ({ ...message, to: "processing" as const })));
    await model.move(all.filter((_, i) => i !== 5_000).map((message) => ({ ...message, to: "sent" as const })));
    let lists = 0;
    const counting: Kv = {
      ...model.kv,
      list: (range, options) => (lists++, model.kv.list(range, options)),
      close: () => {},
    };
    const listsOf = async (first: number) => {
      lists = 0;
      const query = { accountId: ACCOUNT, status: "sent" as const, messages: model.statuses.length };
      await new StatusReader({ kv: counting, ended: model.ended }, query).select(first, first + 19);
      return lists;
    };
    assert.deepEqual([await listsOf(100), await listsOf(500)], [3, 2]);
    assert.deepEqual([await listsOf(5_500), await listsOf(5_600)], [3, 3]);
    await model.move([{ historyNumber: 5_001, to: "failed" }]);
    assert.deepEqual(await model.reader("failed").select(1, 1), [5_001]);
  }));
