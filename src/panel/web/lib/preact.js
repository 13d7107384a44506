// Stands for the library where these files are read as they lie; browsers are served the library itself (`web.ts`).
export * from "preact";
