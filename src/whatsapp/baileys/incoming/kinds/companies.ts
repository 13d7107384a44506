/** The kinds that companies' apps write: templates, buttons, lists, products, orders, invoices; and answers to them. */
import type { proto } from "@whiskeysockets/baileys";
import { unlessMalformed } from "../../../../base/retry.ts";
import {
  amountOf,
  type Details,
  file,
  first,
  isEmpty,
  lines,
  type MediaContent,
  MOST_MEMBERS,
  placeOf,
  plain,
  present,
  type Said,
} from "./said.ts";
import { writtenJid } from "../../jids.ts";

/** No app shows more of them. */
const MOST_BUTTONS = 100;
const MOST_CARDS = 20;

/** What stands above a text: a title, or a file, a place or a product. */
type Header = proto.Message.InteractiveMessage.IHeader;

/** Returns the text with what its header holds: its words in the details, its file as the message's. */
function headed(text: string | null | undefined, header: Header | null | undefined, details: Details): Said {
  const { title, subtitle, documentMessage, imageMessage, videoMessage, locationMessage, productMessage } = header ??
    {};
  const of = productMessage ? product(productMessage) : null;
  const files = [["document", documentMessage], ["image", imageMessage], ["video", videoMessage]] as const;
  const [kind, body] = files.find(([, body]) => body) ?? [];
  const media = kind && body ? file("unknown", kind, body).media : of?.media ?? null;
  const words = [
    title,
    subtitle,
    documentMessage?.caption,
    imageMessage?.caption,
    videoMessage?.caption,
    productMessage?.body,
    productMessage?.footer,
  ];
  const said = plain("unknown", text || words.find(Boolean) || of?.text, {
    header: lines(words),
    location: locationMessage && present(placeOf(locationMessage)),
    ...of?.details,
    ...present(details),
  });
  return { ...said, media };
}

export function template(m: proto.Message.ITemplateMessage): Said {
  const { interactiveMessageTemplate, fourRowTemplate } = m;
  if (interactiveMessageTemplate) return interactive(interactiveMessageTemplate);
  const hydrated = m.hydratedTemplate ?? m.hydratedFourRowTemplate;
  if (hydrated) {
    const { hydratedContentText, hydratedTitleText, hydratedFooterText, hydratedButtons } = hydrated;
    return headed(hydratedContentText, { ...hydrated, title: hydratedTitleText }, {
      footer: hydratedFooterText,
      buttons: first(hydratedButtons, MOST_BUTTONS).map(hydratedButton).toArray(),
    });
  }
  const { content, footer, highlyStructuredMessage } = fourRowTemplate ?? {};
  const said = content ? structured(content) : plain("unknown", null);
  const title = highlyStructuredMessage && structured(highlyStructuredMessage).text;
  return headed(said.text, { ...fourRowTemplate, title }, {
    footer: footer && structured(footer).text,
    buttons: first(fourRowTemplate?.buttons, MOST_BUTTONS).map(unfilledButton).toArray(),
  });
}

function unfilledButton({ quickReplyButton, urlButton, callButton }: proto.ITemplateButton): Details {
  const filled = (words: proto.Message.IHighlyStructuredMessage | null | undefined) => words && structured(words).text;
  return present({
    id: quickReplyButton?.id,
    text: filled((quickReplyButton ?? urlButton ?? callButton)?.displayText),
    url: filled(urlButton?.url),
    phone: filled(callButton?.phoneNumber),
  });
}

function hydratedButton({ quickReplyButton, urlButton, callButton }: proto.IHydratedTemplateButton): Details {
  return present({
    id: quickReplyButton?.id,
    text: quickReplyButton?.displayText ?? urlButton?.displayText ?? callButton?.displayText,
    url: urlButton?.url,
    phone: callButton?.phoneNumber,
  });
}

/** A template that the recipient's app would fill in: its words, if the sender did, else what would be filled in. */
export function structured(m: proto.Message.IHighlyStructuredMessage): Said {
  if (m.hydratedHsm) return template(m.hydratedHsm);
  const params = m.params?.length ? first(m.params) : first(m.localizableParams).map((param) => param.default ?? "");
  return plain("unknown", params.toArray().join(" "), { template: m.elementName });
}

export function interactive(m: proto.Message.IInteractiveMessage): Said {
  const { header, body, footer, nativeFlowMessage, carouselMessage, shopStorefrontMessage, collectionMessage } = m;
  const flows = first(nativeFlowMessage?.buttons, MOST_BUTTONS).map(flowOf).toArray();
  const cards = first(carouselMessage?.cards, MOST_CARDS).map((card) => {
    const { text, details } = interactive(card);
    return present({ text, ...details });
  }).toArray();
  return headed(body?.text, header, {
    footer: footer?.text,
    buttons: flows.flatMap(({ buttons }) => buttons),
    order: flows.find(({ order }) => !isEmpty(order))?.order,
    cards,
    offer: nativeFlowMessage && offerOf(nativeFlowMessage),
    shop: shopStorefrontMessage?.id,
    collection: collectionMessage?.id,
  });
}

/** An offer that ends some time, which stands beside the buttons. */
function offerOf({ messageParamsJson }: proto.Message.InteractiveMessage.INativeFlowMessage): Details {
  const { text, url, copy_code } = (recordOf(messageParamsJson).limited_time_offer ?? {}) as Record<string, unknown>;
  return present({ text: textOf(text), url: textOf(url), copy: textOf(copy_code) });
}

/** Reads a button of a native flow, whose content is JSON of the sender's. Lists are buttons of their rows. */
function flowOf({ name, buttonParamsJson }: proto.Message.InteractiveMessage.NativeFlowMessage.INativeFlowButton) {
  const params = recordOf(buttonParamsJson);
  const order = present({
    id: textOf(params.reference_id),
    total: totalOf(params.total_amount),
    currency: textOf(params.currency),
  });
  const rows = listOf(params.sections).flatMap((section) =>
    listOf(section.rows).map((row) => rowOf({ ...row, section: textOf(section.title) }))
  );
  const button = present({
    id: textOf(params.id),
    text: textOf(params.display_text) ?? textOf(params.title) ?? (isEmpty(order) ? name : null),
    url: textOf(params.url),
    phone: textOf(params.phone_number),
    copy: textOf(params.copy_code),
  });
  return { buttons: [button, ...rows].filter((each) => !isEmpty(each)), order };
}

function rowOf({ id, rowId, title, header, description, section }: Details): Details {
  return present({
    id: textOf(id) ?? textOf(rowId),
    text: textOf(title) ?? textOf(header),
    description: textOf(description),
    section: textOf(section),
  });
}

/** WhatsApp's amounts in JSON are `{ value, offset }`. */
function totalOf(amount: unknown): number | undefined {
  const { value, offset } = (amount ?? {}) as { value?: unknown; offset?: unknown };
  return typeof value === "number" ? value / (typeof offset === "number" && offset > 0 ? offset : 1) : undefined;
}

/** Longer JSON is not read: no app writes it. */
const LONGEST_JSON = 65_536;

/** Returns the record that the text holds as JSON; an empty one if it holds none. */
function recordOf(text: string | null | undefined): Record<string, unknown> {
  if (!text || text.length > LONGEST_JSON) return {};
  const value: unknown = unlessMalformed(() => JSON.parse(text), null);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

function listOf(value: unknown): Record<string, unknown>[] {
  if (!Array.isArray(value)) return [];
  return first(value, MOST_BUTTONS).filter((each) => typeof each === "object" && each !== null).toArray();
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

export function buttons(m: proto.Message.IButtonsMessage): Said {
  const { contentText, text, footerText, buttons } = m;
  return headed(contentText, { ...m, title: text }, {
    footer: footerText,
    buttons: first(buttons, MOST_BUTTONS).map(({ buttonId, buttonText, nativeFlowInfo }) =>
      present({
        id: buttonId,
        text: buttonText?.displayText ?? textOf(recordOf(nativeFlowInfo?.paramsJson).display_text),
      })
    ).toArray(),
  });
}

export function list(m: proto.Message.IListMessage): Said {
  const { title, description, buttonText, footerText, sections, productListInfo } = m;
  const rows = first(sections, MOST_BUTTONS).flatMap((section) =>
    first(section.rows).map((row) => rowOf({ ...row, section: section.title }))
  ).take(MOST_MEMBERS).toArray();
  const products = first(productListInfo?.productSections, MOST_BUTTONS).flatMap(({ title, products }) =>
    first(products).map(({ productId }) => present({ id: productId, section: title }))
  ).take(MOST_MEMBERS).toArray();
  return headed(description, { title }, { footer: footerText, button: buttonText, buttons: rows, products });
}

export function order(m: proto.Message.IOrderMessage): Said {
  const { orderId, token, itemCount, totalAmount1000, totalCurrencyCode, orderTitle, sellerJid, message } = m;
  const order = {
    id: orderId,
    token,
    itemCount,
    total: amountOf(totalAmount1000),
    currency: totalCurrencyCode,
    title: orderTitle,
    seller: writtenJid(sellerJid),
  };
  return plain("unknown", message || orderTitle, { order: present(order) });
}

export function product(m: proto.Message.IProductMessage): Said {
  const { product, catalog, body, footer, businessOwnerJid } = m;
  const { productId, retailerId, title, description, currencyCode, priceAmount1000, url, productImage } = product ?? {};
  const shown = {
    id: productId,
    retailerId,
    title,
    description,
    price: amountOf(priceAmount1000),
    currency: currencyCode,
    url,
    seller: writtenJid(businessOwnerJid),
  };
  const said = plain("unknown", body || title || catalog?.title, {
    product: present(shown),
    catalog: present({ title: catalog?.title, description: catalog?.description }),
    footer,
  });
  const image = productImage ?? catalog?.catalogImage;
  return { ...said, media: image ? file("unknown", "image", image).media : null };
}

const PDF: proto.Message.InvoiceMessage.AttachmentType = 1;

export function invoice(m: proto.Message.IInvoiceMessage): Said {
  const { note, token, attachmentType, attachmentDirectPath, attachmentMediaKey, attachmentMimetype } = m;
  const attachment: MediaContent = {
    directPath: attachmentDirectPath,
    mediaKey: attachmentMediaKey,
    mimetype: attachmentMimetype,
    fileSha256: m.attachmentFileSha256,
    fileEncSha256: m.attachmentFileEncSha256,
  };
  const kind = attachmentType === PDF ? "document" : "image";
  return {
    ...plain("unknown", note, { invoice: present({ token }) }),
    media: attachmentDirectPath ? { kind, file: attachment } : null,
  };
}

export function buttonsResponse(m: proto.Message.IButtonsResponseMessage): Said {
  return plain("buttonsResponseMessage", m.selectedDisplayText, { selectedId: m.selectedButtonId });
}

export function listResponse({ title, description, singleSelectReply }: proto.Message.IListResponseMessage): Said {
  return plain("listResponseMessage", title, { description, selectedId: singleSelectReply?.selectedRowId });
}

export function templateButtonReply(m: proto.Message.ITemplateButtonReplyMessage): Said {
  return plain("unknown", m.selectedDisplayText, { selectedId: m.selectedId });
}

/** What was tapped in a native flow, or what was filled in. */
export function interactiveResponse(m: proto.Message.IInteractiveResponseMessage): Said {
  const { name, paramsJson } = m.nativeFlowResponseMessage ?? {};
  const { id, ...form } = recordOf(paramsJson);
  return plain("unknown", m.body?.text, { selectedId: textOf(id), flow: name, form });
}
