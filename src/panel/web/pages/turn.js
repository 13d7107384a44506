// A message of a chat, as what it is: text, file, poll, place, contact.
import { html } from "../html.js";
import { said, t, tn, when } from "../i18n.js";
import { Time } from "../ui.js";
import { kindOf, kindWord, messageWord, phone } from "../words.js";

export function Turn({ message, isGroup }) {
  const { direction, author, timestamp, status, error, editedAt, deletedAt, quoted, reactions, sendAt } = message;
  const isWaiting = status === "queued" && sendAt && new Date(sendAt) > new Date();
  return html`
    <li class=${`turn ${direction === "out" ? "mine" : ""}`}>
      ${isGroup && author &&
        html`<small><strong>${author.name ?? ""}</strong> ${author.number ? phone(author.number) : ""}</small>`}
      ${quoted?.text && !deletedAt && html`<blockquote class="clip">${quoted.text}</blockquote>`}
      ${deletedAt
        ? html`<em class="soft">${t("This message was deleted.")}</em>`
        : html`<${Body} message=${message} />`}
      ${reactions.length > 0 &&
        html`<div class="reactions">${
          reactions.map(({ number, emoji }) => html`<span title=${number ? phone(number) : ""}>${emoji}</span>`)
        }</div>`}
      <small><${Time} at=${timestamp} />${editedAt && !deletedAt && ` · ${t("edited")}`}${isWaiting
        ? ` · ${t("scheduled for {time}", { time: when(sendAt) })}`
        : status && ` · ${messageWord(status)}`}${error &&
        html`<span class="wrong">${` · ${said(error.message)}`}</span>`}</small>
    </li>
  `;
}

function Body({ message }) {
  const { text, media, details } = message;
  const kind = kindOf(message);
  return html`
    ${media
      ? html`<${File} media=${media} kind=${kind} isMine=${message.direction === "out"} />`
      : kind !== "text" && html`<small class="kind">${kindWord(kind)}</small>`}
    ${details?.header && html`<strong>${details.header}</strong>`}
    ${text !== null && html`<div>${text}</div>`}
    ${details && html`<${Details} details=${details} text=${text} />`}
    ${!media && text === null && kind === "text" && html`<em class="soft">${t("No text")}</em>`}
  `;
}

/** What the message says besides its text. */
function Details({ details, text }) {
  const { undecryptable, withheld, options, latitude, longitude, name, address, contacts, buttons, footer } = details;
  const { order, product, event, invite } = details;
  const place = [name, address].filter((words) => words && words !== text).join(", ");
  return html`
    ${undecryptable && html`<em class="soft">${t("This message could not be decrypted.")}</em>`}
    ${withheld && html`<em class="soft">${t("Can be viewed on the phone only.")}</em>`}
    ${options && html`<ul class="options">${options.map((option) => html`<li>${option}</li>`)}</ul>`}
    ${latitude !== undefined && html`
      <div>${place}</div>
      <a href=${mapOf(latitude, longitude)} target="_blank" rel="noopener">${t("Show on the map")}</a>
    `}
    ${contacts?.map((one) =>
      html`<div>${one.name !== text && html`<strong>${one.name} </strong>`}${
        numbersOf(one).map(phone).join(", ")
      }</div>`
    )}
    ${buttons && html`<ul class="options">${buttons.map((one) => html`<li>${one.text ?? one.id}</li>`)}</ul>`}
    ${order && html`<div>${
      [
        order.itemCount && tn("{n} item", "{n} items", order.itemCount),
        order.total && `${order.total} ${order.currency ?? ""}`,
      ].filter(Boolean).join(" · ")
    }</div>`}
    ${product && html`<div>${
      [product.title, product.price && `${product.price} ${product.currency ?? ""}`]
        .filter((words) => words && words !== text).join(" · ")
    }</div>`}
    ${event && html`<div>${event.startsAt && html`<${Time} at=${event.startsAt} />`}${whereIs(event)}</div>`}
    ${invite && html`<div>${invite.name !== text && invite.name}</div>`}
    ${footer && html`<small>${footer}</small>`}
  `;
}

const whereIs = ({ location }) => location?.name ?? (typeof location === "string" ? location : "");

/** Received contacts have all numbers, those sent from here one. */
const numbersOf = ({ phones, phone: one }) => phones ?? (one ? [one] : []);

const mapOf = (latitude, longitude) =>
  `https://www.openstreetmap.org/?mlat=${Number(latitude)}&mlon=${Number(longitude)}#map=17/${Number(latitude)}/${
    Number(longitude)
  }`;

/** A file: to open and to download while a received one is kept. An image from this origin is shown inline. */
function File({ media: { url, filename }, kind, isMine }) {
  const name = filename ?? kindWord(kind);
  const called = url || isMine ? name : t("{file} (no longer available)", { file: name });
  if (!url) return html`<div><small class="kind">${kindWord(kind)}</small> <em class="soft">${called}</em></div>`;
  const isPicture = ["image", "sticker"].includes(kind) && new URL(url).origin === location.origin;
  const open = isPicture
    ? html`<img src=${url} alt=${called} loading="lazy" />`
    : html`<small class="kind">${kindWord(kind)}</small> ${called}`;
  return html`
    <a href=${url} target="_blank" rel="noopener">${open}</a>
    <div><a class="small" href=${url} download=${name}>${t("Download")}</a></div>
  `;
}
