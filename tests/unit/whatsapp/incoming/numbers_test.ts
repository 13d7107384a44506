/** Whose number is behind a `@lid`: what the store knows, what the group's list says, what the network answers. */
import assert from "node:assert/strict";
import type { BinaryNode, GroupMetadata, SignalKeyStore } from "@whiskeysockets/baileys";
import { StoreError } from "../../../../src/store/kv.ts";
import { keptNamesOf, makePhoneOf } from "../../../../src/whatsapp/baileys/incoming/numbers.ts";
import { ManualClock, testRuntime } from "../../../support/runtime.ts";

const LID = "222@lid";
const PHONE = "5511922222222@s.whatsapp.net";
const GROUP = "120363@g.us";

interface Network {
  /** What the network answers to a usync query: the attributes of its user. */
  answers?: (lid: string) => Promise<Record<string, string>>;
  members?: Partial<GroupMetadata["participants"][number]>[];
  /** What the mapping store knows, by LID. */
  stored?: Pick<Map<string, string>, "get" | "set">;
  remember?: () => Promise<void>;
}

/** The lookup on a network that answers as given; `asked` are the LIDs of its usync queries. */
function lookup({ answers, members, stored = new Map(), remember }: Network) {
  const clock = new ManualClock();
  const asked: string[] = [];
  const lidMapping: Parameters<typeof makePhoneOf>[0]["socket"]["signalRepository"]["lidMapping"] = {
    getPNForLID: async (lid) => await Promise.resolve(stored.get(lid) ?? null),
    storeLIDPNMappings: (pairs) => {
      for (const { lid, pn } of pairs) stored.set(lid, pn);
      return remember?.() ?? Promise.resolve();
    },
  };
  const phoneOf = makePhoneOf({
    socket: {
      signalRepository: { lidMapping },
      generateMessageTag: () => "tag",
      query: async (iq: BinaryNode) => {
        const lids = usersOf(iq).map(({ attrs }) => attrs.jid!);
        asked.push(lids.join(" "));
        const attrs = await Promise.all(lids.map(answers ?? (() => Promise.resolve({}))));
        return answer(...lids.map((jid, i) => ({ jid, ...attrs[i] })));
      },
    } as Parameters<typeof makePhoneOf>[0]["socket"],
    groups: {
      metadata: () =>
        members
          ? Promise.resolve({ participants: members } as GroupMetadata)
          : Promise.reject(new Error("the line is not in this group")),
    },
    runtime: testRuntime(1, clock),
  });
  return { phoneOf, asked, stored, clock };
}

function answer(...users: Record<string, string>[]): BinaryNode {
  const list = { tag: "list", attrs: {}, content: users.map((attrs) => ({ tag: "user", attrs })) };
  return { tag: "iq", attrs: { type: "result" }, content: [{ tag: "usync", attrs: {}, content: [list] }] };
}

function usersOf(iq: BinaryNode): BinaryNode[] {
  const [usync] = iq.content as BinaryNode[];
  const list = (usync!.content as BinaryNode[]).find(({ tag }) => tag === "list");
  return list!.content as BinaryNode[];
}

Deno.test("a number that the network revealed before is not asked for", async () => {
  const { phoneOf, asked } = lookup({ stored: new Map([[LID, PHONE]]) });
  assert.equal(await phoneOf(LID, LID), PHONE);
  assert.deepEqual(asked, []);
});

Deno.test("an unknown number is asked for once, and remembered", async () => {
  const { phoneOf, asked, stored } = lookup({ answers: () => Promise.resolve({ pn_jid: PHONE }) });
  assert.equal(await phoneOf(LID, LID), PHONE);
  assert.equal(await phoneOf(LID, LID), PHONE);
  assert.deepEqual(asked, [LID]);
  assert.equal(stored.get(LID), PHONE);
});

for (
  const [how, member] of [
    ["by LID", { id: LID, phoneNumber: PHONE }],
    ["by number", { id: PHONE, lid: LID }],
  ] as const
) {
  Deno.test(`in a group whose members are listed ${how}, the list tells the number`, async () => {
    const { phoneOf, asked, stored } = lookup({ members: [{ id: "111@lid" }, member] });
    assert.equal(await phoneOf(LID, GROUP), PHONE);
    assert.deepEqual(asked, []);
    assert.equal(stored.get(LID), PHONE);
  });
}

Deno.test("a group that cannot be read does not hinder the question", async () => {
  const { phoneOf, asked } = lookup({ answers: () => Promise.resolve({ pn_jid: PHONE }) });
  assert.equal(await phoneOf(LID, GROUP), PHONE);
  assert.deepEqual(asked, [LID]);
});

Deno.test("a number that the network keeps to itself is null, and asked for again after an hour", async () => {
  const { phoneOf, asked, clock } = lookup({});
  assert.equal(await phoneOf(LID, LID), null);
  await clock.advance(59 * 60_000);
  assert.equal(await phoneOf(LID, LID), null);
  assert.equal(asked.length, 1);
  await clock.advance(60_000);
  assert.equal(await phoneOf(LID, LID), null);
  assert.equal(asked.length, 2);
});

Deno.test("those who are asked about together are one question, each answered by itself", async () => {
  const numbers: Record<string, Record<string, string>> = {
    "222@lid": { pn_jid: PHONE },
    "444@lid": { pn_jid: "5511944444444@s.whatsapp.net" },
  };
  const answers = (lid: string) => Promise.resolve(numbers[lid] ?? {});
  const { phoneOf, asked } = lookup({ answers });
  const found = await Promise.all(["222@lid", "333@lid", "444@lid", "222@lid"].map((lid) => phoneOf(lid, GROUP)));
  assert.deepEqual(found, [PHONE, null, "5511944444444@s.whatsapp.net", PHONE]);
  assert.deepEqual(asked, ["222@lid 333@lid 444@lid"]);
});

Deno.test("what is no phone number does not count as one", async () => {
  const { phoneOf } = lookup({ answers: () => Promise.resolve({ pn_jid: "333@lid" }) });
  assert.equal(await phoneOf(LID, LID), null);
});

Deno.test("a network that is silent or refuses holds a message up for 5 s at most", async () => {
  const silent = lookup({ answers: () => new Promise(() => {}) });
  const number = silent.phoneOf(LID, LID);
  await silent.clock.advance(5_000);
  assert.equal(await number, null);
  const refusing = lookup({ answers: () => Promise.reject(new Error("not allowed")) });
  assert.equal(await refusing.phoneOf(LID, LID), null);
});

Deno.test("a store that cannot remember the number does not hide it", async () => {
  const { phoneOf } = lookup({
    answers: () => Promise.resolve({ pn_jid: PHONE }),
    remember: () => Promise.reject(new Error("disk full")),
  });
  assert.equal(await phoneOf(LID, LID), PHONE);
});

Deno.test("a number that could not be read does not count as unknown", async () => {
  let isAway = true;
  const known = new Map([[LID, PHONE]]);
  const get = (lid: string) => {
    if (isAway) throw new StoreError("unavailable", "the store is away");
    return known.get(lid);
  };
  const { phoneOf } = lookup({ stored: { get, set: () => known } });
  await assert.rejects(phoneOf(LID, LID), StoreError);
  isAway = false;
  assert.equal(await phoneOf(LID, LID), PHONE);
});

Deno.test("a chat is called by its number and its LID, whatever device names it; a group has one name", async () => {
  const rows: Record<string, string> = { "222_reverse": "5511922222222", "5511922222222": "222" };
  const get = (_: string, [id]: string[]) => Promise.resolve(rows[id!] ? { [id!]: rows[id!] } : {});
  const keys = { get } as unknown as SignalKeyStore;
  for (const device of ["222:3@lid", "222:99@hosted.lid"]) {
    assert.deepEqual(await keptNamesOf(keys, device), [LID, PHONE]);
  }
  for (const device of ["5511922222222:3@s.whatsapp.net", "5511922222222:99@hosted"]) {
    assert.deepEqual(await keptNamesOf(keys, device), [PHONE, LID]);
  }
  for (const name of ["333@lid", "44@s.whatsapp.net", GROUP, "status@broadcast"]) {
    assert.deepEqual(await keptNamesOf(keys, name), [name]);
  }
});
