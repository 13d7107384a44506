// As preact.js.
export * from "preact/hooks";
