/** Makes elements. Text is only ever set as text: nothing of the document is read as markup. */

/** `el("td", { class: "soft" }, "text", child, …)`; children that are null are left out. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Paragraphs with `code` in backticks, as descriptions are written. */
export function prose(text) {
  return text.split(/\n\n+/).map((paragraph) =>
    el(
      "p",
      {},
      paragraph.split(/(`[^`]+`)/).map((part) => part.startsWith("`") ? el("code", {}, part.slice(1, -1)) : part),
    )
  );
}

/** Buttons of which one is pressed, and what it shows. `panes` maps a label to a function that makes the content. */
export function tabs(panes) {
  const shown = el("div");
  const buttons = Object.entries(panes).map(([label, make]) =>
    el("button", {
      type: "button",
      "aria-pressed": "false",
      onclick: (event) => {
        for (const button of buttons) button.setAttribute("aria-pressed", String(button === event.currentTarget));
        shown.replaceChildren(make());
      },
    }, label)
  );
  buttons[0].click();
  return [el("div", { class: "tabs" }, buttons), shown];
}
