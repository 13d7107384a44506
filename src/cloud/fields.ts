/** Reads fields as real clients send them: null for what is left out, and structures written as JSON in a text. */
import { unlessMalformed } from "../base/retry.ts";
import { wrongParameter } from "./errors.ts";

export type Fields = Record<string, unknown>;

/** Returns the value without members that are null. */
export function withoutNull(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNull);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).filter(([, each]) => each !== null).map(([name, each]) => [name, withoutNull(each)]),
  );
}

function structure(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  return unlessMalformed(() => withoutNull(JSON.parse(value)), value);
}

/** Returns the member as an object. Throws CloudError; so do all functions here. */
export function object(parent: Fields, name: string): Fields {
  const value = structure(parent[name]);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw wrongParameter(`${name} is required, as an object`);
  }
  return value as Fields;
}

/** As `object`, but empty if the member is absent. */
export function objectIn(parent: Fields, name: string): Fields {
  return parent[name] === undefined ? {} : object(parent, name);
}

export function list(parent: Fields, name: string): Fields[] {
  const value = structure(parent[name]);
  if (!Array.isArray(value) || value.some((each) => typeof each !== "object" || each === null)) {
    throw wrongParameter(`${name} is required, as a list of objects`);
  }
  return value;
}

/** As `list`, but empty if the member is absent. */
export function listIn(parent: Fields, name: string): Fields[] {
  return parent[name] === undefined ? [] : list(parent, name);
}

/** Returns the member as a text; undefined if it is absent. */
export function textIn(parent: Fields, name: string, most = 65_536): string | undefined {
  const value = parent[name];
  if (value === undefined) return undefined;
  if (typeof value !== "string" || value.length > most) {
    throw wrongParameter(`${name} must be a text of at most ${most} characters`);
  }
  return value;
}

export function text(parent: Fields, name: string, most?: number): string {
  const value = textIn(parent, name, most);
  if (value === undefined || value === "") throw wrongParameter(`${name} is required`);
  return value;
}

export function isTrue(value: unknown): boolean {
  return value === true || value === "true";
}

/** Returns a number, which may be written as a text. */
export function number(value: unknown): unknown {
  return typeof value === "string" && value.trim() !== "" ? Number(value) : value;
}

/** Returns the object with the fields that `?fields=` names, and its id; all without it. Others are left out. */
export function selected(all: Fields, fields: string | undefined): Fields {
  if (!fields) return all;
  const names = new Set(fields.replaceAll(/\{[^{}]*\}|\([^()]*\)|\.\w+/g, "").split(",").map((name) => name.trim()));
  return Object.fromEntries(Object.entries(all).filter(([name]) => name === "id" || names.has(name)));
}
