// Stands in for the library when these files are read from disk; browsers get the library itself (`web.ts`).
export * from "preact";
