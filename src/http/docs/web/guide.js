/** A guide: its menu on a phone, its search, its outline, and its samples. */
import { menu } from "./dom.js";
import { fillSamples } from "./reader.js";
import "./search.js";

menu();
fillSamples(document.querySelector("main"));
const outline = document.querySelector(".outline details");
const isBeside = matchMedia("(min-width: 75rem)");
const unfold = () => outline && (outline.open = isBeside.matches);
isBeside.addEventListener("change", unfold);
unfold();
