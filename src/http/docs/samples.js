/** The same request in four languages, ready to be pasted. */

/** What stands where the key belongs. */
export const KEY = "YOUR_API_KEY";

/**
 * @typedef {object} SampleRequest
 * @property {string} method
 * @property {string} url
 * @property {Record<string, string>} headers
 * @property {unknown} [json] The body, if it is JSON.
 * @property {Record<string, any>} [form] Fields of a multipart upload, where a file is `{ file: "name.pdf" }`.
 */

/** @type {Record<"curl" | "JavaScript" | "Python" | "PHP", (request: SampleRequest) => string>} */
export const SAMPLES = { curl, JavaScript: javascript, Python: python, PHP: php };

/** @param {SampleRequest} request */
function curl({ method, url, headers, json, form }) {
  const parts = [`curl -X ${method} ${shell(url)}`];
  for (const [name, value] of Object.entries(headers)) parts.push(`-H ${shell(`${name}: ${value}`)}`);
  if (json !== undefined) parts.push(`-H 'content-type: application/json'`, `-d ${shell(JSON.stringify(json))}`);
  for (const [name, value] of Object.entries(form ?? {})) {
    parts.push(`-F ${shell(`${name}=${value.file ? `@${value.file}` : value}`)}`);
  }
  return parts.join(" \\\n  ");
}

/** @param {SampleRequest} request */
function javascript({ method, url, headers, json, form }) {
  const lines = [];
  if (form) {
    if (Object.values(form).some((value) => value.file)) lines.push(`import { openAsBlob } from "node:fs";`, "");
    lines.push("const form = new FormData();");
    for (const [name, value] of Object.entries(form)) {
      const given = value.file
        ? `await openAsBlob(${JSON.stringify(value.file)}), ${JSON.stringify(value.file)}`
        : JSON.stringify(String(value));
      lines.push(`form.set(${JSON.stringify(name)}, ${given});`);
    }
    lines.push("");
  }
  const all = { ...headers, ...(json === undefined ? {} : { "content-type": "application/json" }) };
  lines.push(`const response = await fetch(${JSON.stringify(url)}, {`, `  method: ${JSON.stringify(method)},`);
  lines.push(`  headers: ${JSON.stringify(all)},`);
  if (json !== undefined) lines.push(`  body: JSON.stringify(${indented(json)}),`);
  if (form) lines.push("  body: form,");
  lines.push("});", "console.log(response.status, await response.json());");
  return lines.join("\n");
}

/** @param {SampleRequest} request */
function python({ method, url, headers, json, form }) {
  const lines = ["import requests", "", `response = requests.request(`, `    ${JSON.stringify(method)},`];
  lines.push(`    ${JSON.stringify(url)},`, `    headers=${pythonValue(headers)},`);
  if (json !== undefined) lines.push(`    json=${pythonValue(json)},`);
  if (form) {
    const fields = Object.entries(form).filter(([, value]) => !value.file);
    const files = Object.entries(form).filter(([, value]) => value.file);
    lines.push(`    data=${pythonValue(Object.fromEntries(fields))},`);
    lines.push(
      `    files={${files.map(([name, { file }]) => `${JSON.stringify(name)}: open(${JSON.stringify(file)}, "rb")`)}},`,
    );
  }
  return [...lines, ")", "print(response.status_code, response.json())"].join("\n");
}

/** @param {SampleRequest} request */
function php({ method, url, headers, json, form }) {
  const sent = Object.entries({ ...headers, ...(json === undefined ? {} : { "content-type": "application/json" }) });
  const lines = ["<?php", `$request = curl_init(${phpValue(url)});`, "curl_setopt_array($request, ["];
  lines.push(`    CURLOPT_CUSTOMREQUEST => ${phpValue(method)},`, "    CURLOPT_RETURNTRANSFER => true,");
  lines.push(`    CURLOPT_HTTPHEADER => [${sent.map(([name, value]) => phpValue(`${name}: ${value}`)).join(", ")}],`);
  if (json !== undefined) lines.push(`    CURLOPT_POSTFIELDS => json_encode(${phpValue(json)}),`);
  if (form) {
    const fields = Object.entries(form).map(([name, value]) =>
      `${phpValue(name)} => ${value.file ? `new CURLFile(${phpValue(value.file)})` : phpValue(String(value))}`
    );
    lines.push(`    CURLOPT_POSTFIELDS => [${fields.join(", ")}],`);
  }
  lines.push(
    "]);",
    "echo curl_exec($request), PHP_EOL;",
    "echo curl_getinfo($request, CURLINFO_RESPONSE_CODE), PHP_EOL;",
  );
  return lines.join("\n");
}

function shell(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function indented(value) {
  return JSON.stringify(value, null, 2).replaceAll("\n", "\n  ");
}

function pythonValue(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${
    Object.entries(value).map(([name, inner]) => `${JSON.stringify(name)}: ${pythonValue(inner)}`).join(", ")
  }}`;
}

function phpValue(value) {
  if (Array.isArray(value)) return `[${value.map(phpValue).join(", ")}]`;
  if (typeof value === "string") return `'${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `[${Object.entries(value).map(([name, inner]) => `${phpValue(name)} => ${phpValue(inner)}`).join(", ")}]`;
}
