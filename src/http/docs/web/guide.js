/** A guide: its menu on a phone, and the copy buttons of its code boxes. */
import { copyButton, el, menu } from "./dom.js";

menu();
for (const pre of document.querySelectorAll("main pre")) {
  const box = el("div", { class: "code" });
  pre.replaceWith(box);
  box.append(pre, copyButton(() => pre.textContent, pre));
}
