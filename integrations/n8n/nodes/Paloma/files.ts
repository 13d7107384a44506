import type { INodeProperties } from "n8n-workflow";
import { FROM, idempotencyKeyOf, OPTIONS, optionsOf, TO } from "./fields";
import { ask, type Item, type Operation } from "./operation";
import { call } from "../shared/request";

const FILE: INodeProperties[] = [
  {
    displayName: "Send As",
    name: "sendAs",
    type: "options",
    options: [
      {
        name: "By Its Extension",
        value: "file",
        description:
          "Png, jpg, gif and webp as an image, mp4 and mov as a video, mp3 and ogg as audio, others as a document",
      },
      { name: "Sticker", value: "sticker", description: "WebP only" },
      { name: "Voice Note", value: "voice", description: "Opus in Ogg only" },
    ],
    default: "file",
  },
  {
    displayName: "Source",
    name: "source",
    type: "options",
    options: [
      { name: "Input Data", value: "binary", description: "A file of the input item" },
      { name: "URL", value: "url", description: "Fetched by the gateway when the message's turn comes" },
    ],
    default: "binary",
  },
  {
    displayName: "Input Data Field Name",
    name: "binaryField",
    type: "string",
    default: "data",
    required: true,
    displayOptions: { show: { source: ["binary"] } },
    hint: "The name of the input field that has the file",
  },
  {
    displayName: "URL",
    name: "fileUrl",
    type: "string",
    default: "",
    required: true,
    displayOptions: { show: { source: ["url"] } },
  },
  {
    displayName: "File Name",
    name: "filename",
    type: "string",
    default: "",
    displayOptions: { show: { sendAs: ["file"] } },
    description: "Left out, the name that the file has",
  },
  {
    displayName: "Caption",
    name: "caption",
    type: "string",
    default: "",
    displayOptions: { show: { sendAs: ["file"] } },
  },
];

/** The fields of a form, as text. */
function formOf(fields: Record<string, unknown>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) form.append(name, String(value));
  }
  return form;
}

function fileNameOf(headers: Record<string, string>): string | undefined {
  const [, encoded, quoted] = /filename\*=UTF-8''([^;]+)|filename="([^"]*)"/i.exec(headers["content-disposition"]) ??
    [];
  return encoded ? decodeURIComponent(encoded) : quoted;
}

/** A file of the item goes as a form, which has no limit of its own, or in base64 where the API takes no form. */
async function content(item: Item): Promise<{ path: string; body: FormData | Record<string, string> }> {
  const kind = item.text("sendAs");
  const named = kind === "file" ? { filename: item.value("filename"), caption: item.value("caption") } : {};
  if (item.text("source") === "url") {
    const body = { ...named, fileUrl: item.text("fileUrl") };
    return { path: kind === "file" ? "document" : kind, body: body as Record<string, string> };
  }
  const field = item.text("binaryField");
  const { fileName, mimeType } = item.node.helpers.assertBinaryData(item.index, field);
  const bytes = await item.node.helpers.getBinaryDataBuffer(item.index, field);
  if (kind !== "file") return { path: kind, body: { file: bytes.toString("base64") } };
  const form = formOf({ caption: named.caption });
  form.append("file", new Blob([new Uint8Array(bytes)], { type: mimeType }), named.filename ?? fileName ?? "file");
  return { path: "file", body: form };
}

export const sendFile: Operation = {
  option: {
    name: "Send File",
    value: "sendFile",
    action: "Send a file",
    description: "Send an image, video, audio, document, voice note or sticker",
  },
  fields: [FROM, TO, ...FILE, OPTIONS],
  async run(item) {
    const { path, body } = await content(item);
    const fields = { sessionId: item.value("sessionId"), to: item.text("to"), ...optionsOf(item) };
    if (body instanceof FormData) formOf(fields).forEach((value, name) => body.append(name, value));
    return await ask(item, {
      method: "POST",
      path: `/v1/messages/send/${path}`,
      body: body instanceof FormData ? body : { ...fields, ...body },
      idempotencyKey: idempotencyKeyOf(item),
    });
  },
};

export const downloadFile: Operation = {
  option: {
    name: "Download File",
    value: "download",
    action: "Download a received file",
    description: "Download the file of a received message, within a day",
  },
  fields: [
    {
      displayName: "Media Link",
      name: "link",
      type: "string",
      default: "={{ $json.data.media.url }}",
      required: true,
      description: "The address in the media of the event",
    },
    {
      displayName: "Put Output File in Field",
      name: "binaryField",
      type: "string",
      default: "data",
      required: true,
    },
  ],
  async run(item) {
    // Of the link only the path is taken: the key goes to no other host.
    const { pathname, search } = new URL(item.text("link"));
    const media = pathname.slice(pathname.lastIndexOf("/media/"));
    const { body, headers } = await call(item.node, { method: "GET", path: media + search, isFile: true }, item.index);
    const binary = await item.node.helpers.prepareBinaryData(
      body as unknown as Buffer,
      fileNameOf(headers),
      headers["content-type"],
    );
    return [{ json: item.node.getInputData()[item.index].json, binary: { [item.text("binaryField")]: binary } }];
  },
};
