// Finding parts of the page, and saying what went wrong in one of them.

export const find = (selector, root = document) => root.querySelector(selector);

/** Shows the error in the section's own place, or clears it; that a question was given up is none. */
export function say(section, error) {
  find(".error", section).textContent = error && error.name !== "AbortError" ? error.message : "";
}
