/** The schema of the network's messages, as the library ships it, and messages made at random from it. */
import { proto } from "@whiskeysockets/baileys";
import protobuf from "protobufjs";
import type { Random } from "../../src/runtime.ts";

const { Enum, Type } = protobuf;
const FILE = new URL("../WAProto/WAProto.proto", import.meta.resolve("@whiskeysockets/baileys"));

/** The type of all messages. */
export const MESSAGE: protobuf.Type = (() => {
  const { root } = protobuf.parse(Deno.readTextFileSync(FILE), { keepCase: true });
  root.resolveAll();
  return root.lookupType("proto.Message");
})();

/** The names from the kind down, and the word or address that stands there. */
interface Placed {
  path: string;
  value: string;
}

export interface Made {
  message: proto.Message;
  words: Placed[];
}

/** Fields that say the same in several forms, of which an app writes one. */
const FORMS: Readonly<Record<string, readonly string[]>> = {
  TemplateMessage: ["hydratedTemplate", "fourRowTemplate", "hydratedFourRowTemplate", "interactiveMessageTemplate"],
  HighlyStructuredMessage: ["params", "localizableParams", "hydratedHsm"],
  ContextInfo: ["forwardedNewsletterMessageInfo", "forwardedAiBotMessageInfo"],
};

/** What stands for itself: what is quoted and what is wrapped are messages of their own. */
const isOwn = ({ resolvedType }: protobuf.Field) => resolvedType !== MESSAGE;
const HOLDS_JID = /jid|participant$|requestFrom$/i;
const SERVERS = ["@s.whatsapp.net", ":7@s.whatsapp.net", "@c.us", "@lid", ":12@lid", ":99@hosted", ":99@hosted.lid"];
const GROUPS = ["@g.us"];

/**
 * Makes a message of the kind in which every field down to that depth is set: one field of each `oneof`, each text a
 * word of its own.
 */
export function madeAtRandom(kind: protobuf.Field, { depth, random }: { depth: number; random: Random }): Made {
  const words: Placed[] = [];
  const some = (below: number) => random.between(0, below - 1);

  function word(field: protobuf.Field, path: string): string {
    if (/Json$/.test(field.name)) return "{}";
    const servers = /group|parent/i.test(field.name) ? GROUPS : SERVERS;
    const value = HOLDS_JID.test(field.name)
      ? `4915${String(some(1e8)).padStart(8, "0")}${servers[some(servers.length)]}`
      : `w${words.length}x${some(1e6)}`;
    words.push({ path, value });
    return value;
  }

  function scalar(field: protobuf.Field): unknown {
    if (field.resolvedType instanceof Enum) {
      const values = Object.values(field.resolvedType.values);
      return values[some(values.length)];
    }
    if (field.type === "bool") return some(2) === 1;
    if (field.type === "bytes") return random.bytes(some(8));
    return some(1_000);
  }

  function body(type: protobuf.Type, path: string, left: number): Record<string, unknown> {
    const forms = [...type.oneofsArray.map(({ oneof }) => oneof), FORMS[type.name] ?? []];
    const others = new Set(forms.flatMap((names) => {
      const kept = some(names.length || 1);
      return names.filter((_, i) => i !== kept);
    }));
    const made: Record<string, unknown> = {};
    for (const field of type.fieldsArray) {
      const inner = `${path}.${field.name}`;
      const isContext = field.name === "contextInfo" && left < depth;
      if (others.has(field.name) || !isOwn(field) || isContext) continue;
      if (field.resolvedType instanceof Type && left === 0) continue;
      const one = () =>
        field.type === "string"
          ? word(field, inner)
          : field.resolvedType instanceof Type
          ? body(field.resolvedType, inner, left - 1)
          : scalar(field);
      made[field.name] = field.repeated ? Array.from({ length: 1 + some(2) }, one) : one();
    }
    return made;
  }

  const value = kind.resolvedType instanceof Type ? body(kind.resolvedType, kind.name, depth) : word(kind, kind.name);
  return { message: proto.Message.fromObject({ [kind.name]: value }), words };
}
