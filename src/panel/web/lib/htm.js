// As preact.js.
export { default } from "htm";
