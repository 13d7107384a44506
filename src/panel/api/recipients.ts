/** Checks the recipients of a list before anything is sent to them, by the rules of the API. */
import { z } from "zod";
import { yielding } from "../../base/batches.ts";
import { Addressee, homeCountry } from "../../http/api/schemas.ts";
import { MAX_BULK } from "../../http/resources/sends/bulk.ts";
import { chatOf } from "../../message/message.ts";
import { optedOutAmong } from "../../message/opt_outs.ts";
import type { Parts } from "./parts.ts";

const Recipients = z.strictObject({ recipients: z.array(z.string()).min(1).max(MAX_BULK) });

interface Fault {
  /** Index in the list. */
  index: number;
  message: string;
}

export function addRecipients({ guard, kv, budgets, runtime: { clock } }: Parts): void {
  guard.account({ method: "POST", path: "/accounts/:accountId/recipients", body: Recipients }, async (asked) => {
    const { account: { id, country }, body: { recipients } } = asked;
    return { data: await budgets.job(id, () => homeCountry.run(country ?? "", () => check())) };

    /** Resolves to what is wrong, and to how many stand in the list before. */
    async function check(): Promise<{ wrong: Fault[]; repeated: number }> {
      const wrong: Fault[] = [];
      const chats = new Map<number, string>();
      for await (const [index, text] of yielding(recipients.entries(), clock)) {
        const read = Addressee.safeParse(text);
        if (read.success) chats.set(index, chatOf(read.data));
        else wrong.push({ index, message: read.error.issues[0]!.message });
      }
      const out = await optedOutAmong(kv, id, [...chats.values()]);
      for (const [index, chat] of chats) {
        if (out.has(chat)) wrong.push({ index, message: "has opted out of your messages" });
      }
      return { wrong, repeated: chats.size - new Set(chats.values()).size };
    }
  });
}
