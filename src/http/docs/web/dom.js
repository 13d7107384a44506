/** Builds elements. Text is only ever set as text, so nothing in the document is read as markup. */

/** `el("td", { class: "soft" }, "text", child, [child, …])`; children that are null are left out. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** Paragraphs with `code` in backticks, as descriptions are written. */
export function prose(text) {
  return text.split(/\n\n+/).filter(Boolean).map((paragraph) =>
    el("p", {}, [
      paragraph.split(/(`[^`]+`)/).map((part) => part.startsWith("`") ? el("code", {}, part.slice(1, -1)) : part),
    ])
  );
}

const COPIED_MS = 2_000;

/** A box with a button that copies what stands in `pre`; without a clipboard, as over plain http, it selects that. */
export function codeBox(pre) {
  const copy = async ({ currentTarget: button }) => {
    try {
      await navigator.clipboard.writeText(pre.textContent);
      button.textContent = "Copied";
      setTimeout(() => button.textContent = "Copy", COPIED_MS);
    } catch {
      getSelection().selectAllChildren(pre);
    }
  };
  return el("div", { class: "code" }, el("button", { type: "button", class: "copy", onclick: copy }, "Copy"), pre);
}

/** On a phone a button opens the sidebar. */
export function menu() {
  const button = document.querySelector("#menu");
  const side = document.querySelector("#side");
  const show = (open) => {
    button.setAttribute("aria-expanded", String(open));
    side.classList.toggle("open", open);
  };
  button.addEventListener("click", () => show(button.getAttribute("aria-expanded") !== "true"));
  side.addEventListener("click", ({ target }) => target.closest("a") && show(false));
  addEventListener("keydown", ({ key }) => {
    if (key !== "Escape" || !side.classList.contains("open")) return;
    show(false);
    button.focus();
  });
}
