/** The same request in several languages, ready to paste. */

/** The placeholder for the key. */
export const KEY = "YOUR_API_KEY";

/**
 * @typedef {object} SampleRequest
 * @property {string} method
 * @property {string} url
 * @property {Record<string, string>} headers
 * @property {unknown} [json] The body, if it is JSON.
 * @property {Record<string, any>} [form] Fields of a multipart upload, where a file is `{ file: "name.pdf" }`.
 */

/** @type {Record<"curl" | "JavaScript" | "Python" | "PHP" | "Go", (request: SampleRequest) => string>} */
export const SAMPLES = { curl, JavaScript: javascript, Python: python, PHP: php, Go: go };

function curl({ method, url, headers, json, form }) {
  const parts = [`curl -X ${method} ${shell(url)}`];
  for (const [name, value] of Object.entries(headers)) parts.push(`-H ${shell(`${name}: ${value}`)}`);
  if (json !== undefined) parts.push(`-H 'content-type: application/json'`, `-d ${shell(JSON.stringify(json))}`);
  for (const [name, value] of Object.entries(form ?? {})) {
    parts.push(`-F ${shell(`${name}=${value.file ? `@${value.file}` : value}`)}`);
  }
  return parts.join(" \\\n  ");
}

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

function go({ method, url, headers, json, form }) {
  const imports = ["fmt", "io", "net/http"];
  const stop = ["if err != nil {", "\tpanic(err)", "}"];
  const lines = [];
  const set = Object.entries(headers).map(([name, value]) => [goText(name), goText(value)]);
  let body = "nil";
  if (json !== undefined) {
    imports.push("strings");
    lines.push(`body := strings.NewReader(${goText(JSON.stringify(json))})`);
    set.push([goText("content-type"), goText("application/json")]);
    body = "body";
  }
  if (form) {
    imports.push("bytes", "mime/multipart");
    lines.push("body := &bytes.Buffer{}", "form := multipart.NewWriter(body)");
    for (const [name, value] of Object.entries(form)) {
      if (!value.file) lines.push(`form.WriteField(${goText(name)}, ${goText(String(value))})`);
      else {
        imports.push("os");
        lines.push(`file, err := os.Open(${goText(value.file)})`, ...stop, "defer file.Close()");
        lines.push(`part, err := form.CreateFormFile(${goText(name)}, ${goText(value.file)})`, ...stop);
        lines.push("io.Copy(part, file)");
      }
    }
    lines.push("form.Close()");
    set.push([goText("content-type"), "form.FormDataContentType()"]);
    body = "body";
  }
  lines.push(`request, err := http.NewRequest(${goText(method)}, ${goText(url)}, ${body})`, ...stop);
  for (const [name, value] of set) lines.push(`request.Header.Set(${name}, ${value})`);
  lines.push("response, err := http.DefaultClient.Do(request)", ...stop, "defer response.Body.Close()");
  lines.push("answer, _ := io.ReadAll(response.Body)", "fmt.Println(response.StatusCode, string(answer))");
  return [
    "package main",
    "",
    "import (",
    ...[...new Set(imports)].sort().map((name) => `\t"${name}"`),
    ")",
    "",
    "func main() {",
    ...lines.map((line) => `\t${line}`),
    "}",
  ].join("\n");
}

/** Go reads every escape that JSON writes. */
function goText(text) {
  return JSON.stringify(text);
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
