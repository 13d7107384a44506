/** Kinds of message beside texts and files: what each takes, and what each refuses. */
import { type Case, nobodys, problem, wrong } from "../../support/api_table.ts";

const TO = "34600111222";
const ACK = /^\{"messageId":"msg_[0-9a-z]{26}","status":"queued","jobId":"job_[0-9a-z]{26}"\}$/;

function send(kind: string, sample: Record<string, unknown>) {
  const ask = (json: unknown): Case["ask"] => () => ["POST", `/v1/messages/send/${kind}`, { json }];
  return {
    takes: (name: string, change: Record<string, unknown> = {}): Case => ({
      name: `a ${kind} ${name}`,
      ask: ask({ to: TO, ...sample, ...change }),
      status: 202,
      contains: [ACK],
    }),
    /** The path of what is wrong, and the change that makes it so. */
    refuses: (path: string, change: Record<string, unknown>, message?: RegExp): Case => ({
      name: `a ${kind} with ${JSON.stringify(change).slice(0, 60)} is refused at ${path}`,
      ask: ask({ to: TO, ...sample, ...change }),
      status: 400,
      contains: wrong(path, message),
    }),
  };
}

const location = send("location", { latitude: 41.3851, longitude: 2.1734 });
const contact = send("contact", { contacts: [{ name: "Anna", phone: "34600111223" }] });
const poll = send("poll", { question: "When?", options: ["Today", "Tomorrow"] });

const NETWORK_ID = "3EB0A1B2C3D4E5F6A7B8";
const REACTED = { to: undefined, messageId: nobodys("msg") };
const reaction = send("reaction", { ...REACTED, emoji: "👍" });
const forward = send("forward", { messageId: nobodys("msg") });
const plain = send("text", { text: "hi" });

function unknown(kind: string, json: Record<string, unknown>): Case {
  return {
    name: `a ${kind} about ${JSON.stringify(json).slice(0, 60)} is 404`,
    ask: () => ["POST", `/v1/messages/send/${kind}`, { json }],
    status: 404,
    contains: problem("not_found"),
  };
}

/** The beginnings of files, in base64. */
const WEBP = btoa("RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0");
const OPUS = btoa(`OggS\0\x02${"\0".repeat(22)}OpusHead\x01\x01`);
const VORBIS = btoa(`OggS\0\x02${"\0".repeat(22)}\x01vorbis`);
const PNG = btoa("\x89PNG\r\n\x1a\n");
const FILE_URL = "https://files.example.com/a";
const sticker = send("sticker", { file: WEBP });
const voice = send("voice", { file: OPUS });
const document = send("document", { fileUrl: `${FILE_URL}.pdf` });
const status = send("status", { to: undefined, text: "open today", audience: [TO] });

export const kindCases: readonly Case[] = [
  location.takes("needs degrees alone"),
  location.takes("may have a name and an address", { name: "Shop", address: "Plaça 1" }),
  location.takes("takes null as left out", { name: null, address: null }),
  location.takes("may lie at the edge of the map", { latitude: -90, longitude: 180 }),
  location.refuses("latitude", { latitude: 90.1 }),
  location.refuses("latitude", { latitude: "41" }),
  location.refuses("latitude", { latitude: undefined }, /is required/),
  location.refuses("longitude", { longitude: -180.5 }),
  location.refuses("name", { name: "x".repeat(1_001) }, /more than 1,000/),
  location.refuses("name", { name: " " }, /is blank/),
  location.refuses("text", { text: "here" }, /not a known field/),
  location.refuses("to", { to: "+34" }),

  contact.takes("may be one card"),
  contact.takes("may be several, with organizations", {
    contacts: [{ name: "A", phone: "34600111223", organization: "Acme" }, { name: "B", phone: "34600111224" }],
  }),
  contact.refuses("contacts", { contacts: [] }),
  contact.refuses("contacts", { contacts: Array(51).fill({ name: "A", phone: "34600111223" }) }),
  contact.refuses("contacts.0.phone", { contacts: [{ name: "A", phone: "0600111223" }] }, /country code/),
  contact.refuses("contacts.0.name", { contacts: [{ phone: "34600111223" }] }, /is required/),
  contact.refuses("contacts.0.email", { contacts: [{ name: "A", phone: "34600111223", email: "a@b.c" }] }),

  poll.takes("needs a question and two options"),
  poll.takes("may take several answers", { multiple: true }),
  poll.takes("may have twelve options", { options: Array.from({ length: 12 }, (_, i) => `option ${i}`) }),
  poll.refuses("options", { options: ["one"] }),
  poll.refuses("options", { options: Array.from({ length: 13 }, (_, i) => `option ${i}`) }),
  poll.refuses("options", { options: ["same", "same"] }, /twice/),
  poll.refuses("options.1", { options: ["a", "x".repeat(101)] }, /more than 100/),
  poll.refuses("question", { question: "" }, /"errors":\[{"path":"question","message":"is empty"}\]/),
  poll.refuses("question", { question: "x".repeat(256) }, /more than 255/),
  poll.refuses("multiple", { multiple: "yes" }),

  sticker.takes("is WebP"),
  sticker.takes("may be fetched", { file: undefined, fileUrl: `${FILE_URL}.webp` }),
  sticker.refuses("file", { file: PNG }, /PNG and JPEG are not converted/),
  sticker.refuses("file", { file: undefined }, /file or fileUrl/),
  sticker.refuses("file", { fileUrl: `${FILE_URL}.webp` }, /not both/),
  sticker.refuses("file", { file: "no base64!" }),
  sticker.refuses("caption", { caption: "look" }, /not a known field/),
  sticker.refuses("viewOnce", { viewOnce: true }),

  voice.takes("is Opus in Ogg"),
  voice.takes("may be heard once", { viewOnce: true }),
  voice.refuses("file", { file: VORBIS }, /Ogg file without Opus/),
  voice.refuses("file", { file: btoa("ID3\x04 music") }, /must be Opus/),
  voice.refuses("fileUrl", { file: undefined, fileUrl: "ftp://example.com/a.ogg" }, /http or https/),

  document.takes("may be fetched"),
  document.takes("may be fetched, and named", { filename: "invoice.pdf", caption: "yours" }),
  document.refuses("file", { file: PNG, filename: "a.png" }, /not both/),
  document.refuses("file", { fileUrl: undefined }, /file or fileUrl/),
  document.refuses("filename", { fileUrl: undefined, file: PNG }, /is required/),
  document.refuses("viewOnce", { viewOnce: true }),

  status.takes("may be a text"),
  status.takes("may be a picture", { text: undefined, file: PNG, filename: "a.png", caption: "look" }),
  status.takes("may be fetched", { text: undefined, fileUrl: `${FILE_URL}.mp4` }),
  status.refuses("audience", { audience: [] }),
  status.refuses("audience", { audience: undefined }, /is required/),
  status.refuses("audience.0", { audience: ["+34"] }),
  status.refuses("text", { text: undefined }, /one of text, file and fileUrl/),
  status.refuses("text", { file: PNG, filename: "a.png" }, /no two/),
  status.refuses("file", { text: undefined, file: PNG, filename: "a.pdf" }, /image, a video or a sound/),
  status.refuses("caption", { caption: "look" }, /not a text/),
  status.refuses("to", { to: TO }, /not a known field/),

  status.takes("may wait, and go without a preview", { linkPreview: false, priority: "low", ttl: 60 }),
  status.refuses("replyTo", { replyTo: NETWORK_ID }, /messages in a chat/),
  status.refuses("mentions", { mentions: [TO] }, /messages in a chat/),
  status.refuses("typing", { typing: 1 }, /messages in a chat/),
  status.refuses("viewOnce", { viewOnce: true }, /images, videos and sounds/),

  unknown("reaction", { messageId: nobodys("msg"), emoji: "👍" }),
  unknown("reaction", { messageId: NETWORK_ID, emoji: "" }),
  reaction.refuses("messageId", { messageId: "not an id" }, /id of a message/),
  reaction.refuses("messageId", { messageId: undefined }, /is required/),
  ...["x", "👍👎", "👍 ", ":+1:", "12"].map((emoji) => reaction.refuses("emoji", { emoji }, /not one emoji/)),
  reaction.refuses("emoji", { emoji: undefined }, /is required/),
  reaction.refuses("to", { to: TO }, /not a known field/),
  reaction.refuses("typing", { typing: 20_001 }),
  reaction.refuses("priority", { priority: "urgent" }),

  unknown("forward", { to: TO, messageId: nobodys("msg") }),
  unknown("forward", { to: TO, messageId: NETWORK_ID }),
  forward.refuses("to", { to: undefined }, /is required/),
  forward.refuses("text", { text: "look" }, /not a known field/),
  forward.refuses("mentions.0", { mentions: ["+34"] }, /country code/),

  unknown("text", { to: TO, text: "hi", replyTo: nobodys("msg") }),
  unknown("text", { to: TO, text: "hi", replyTo: NETWORK_ID }),
  plain.takes("may mention numbers and JIDs", {
    mentions: ["34600111222", "1234567@lid", "34600111222@s.whatsapp.net"],
  }),
  plain.takes("may mention all of a group", { to: "120363025246125486@g.us", mentions: ["all"] }),
  plain.takes("may mention nobody", { mentions: [] }),
  plain.takes("may be typed for 20 s, without a preview", { typing: 20_000, linkPreview: false, viewOnce: false }),
  plain.takes("takes null as left out", {
    replyTo: null,
    mentions: null,
    viewOnce: null,
    linkPreview: null,
    typing: null,
  }),
  plain.refuses("mentions", { mentions: "all" }, /in groups only/),
  plain.refuses("mentions", { mentions: ["all"] }, /in groups only/),
  plain.refuses("mentions.0", { mentions: ["all", TO] }, /person's JID/),
  plain.refuses("mentions", { mentions: "everybody" }, /must be .*all/),
  plain.refuses("mentions.0", { mentions: ["a@b"] }, /or a person's JID/),
  plain.refuses("mentions", { mentions: Array(1_025).fill(TO) }, /at most 1,024/),
  plain.refuses("viewOnce", { viewOnce: true }, /images, videos and sounds/),
  plain.refuses("viewOnce", { viewOnce: "yes" }),
  plain.refuses("typing", { typing: 20_001 }),
  plain.refuses("typing", { typing: -1 }),
  plain.refuses("linkPreview", { linkPreview: "https://example.com" }),
  plain.refuses("replyTo", { replyTo: "" }),
];
