/** A form that makes the request of an operation, and shows it in four languages and what came back. */
import { el, tabs } from "./dom.js";
import { exampleOf, resolve } from "./schema.js";
import { KEY, SAMPLES } from "./samples.js";

const keyField = document.querySelector("#key");
keyField.value = sessionStorage.getItem("paloma-docs-key") ?? "";
keyField.addEventListener("input", () => sessionStorage.setItem("paloma-docs-key", keyField.value));

/** Samples made from the examples, and the form below them. */
export function tryIt(api, operation) {
  const request = exampleRequest(api, operation);
  return [
    ...tabs(Object.fromEntries(
      Object.entries(SAMPLES).map(([name, write]) => [name, () => el("pre", {}, el("code", {}, write(request)))]),
    )),
    el("details", {}, el("summary", {}, "Try it"), form(api, operation, request)),
  ];
}

/** The request that the examples of the document describe. */
function exampleRequest(api, { method, path, parameters = [], requestBody, security }) {
  const needsKey = security.length > 0;
  const inPath = (name) => parameters.find((parameter) => parameter.in === "path" && parameter.name === name);
  const url = new URL(".", location.href).href.slice(0, -1) +
    path.replaceAll(/\{(\w+)\}/g, (_, name) => exampleOf(api, inPath(name).schema));
  const request = { method: method.toUpperCase(), url, headers: needsKey ? { "x-api-key": KEY } : {} };
  const [type, content] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  if (type === "application/json") request.json = exampleOf(api, content.schema);
  if (type === "multipart/form-data") {
    const example = exampleOf(api, content.schema);
    request.form = { ...example, file: { file: "picture.png" } };
  }
  return request;
}

function form(api, operation, example) {
  const { method, path, parameters = [], requestBody } = operation;
  const given = parameters.filter((parameter) => parameter.in !== "cookie");
  const inputs = given.map((parameter) =>
    el(
      "label",
      {},
      parameter.name,
      el("input", {
        name: `${parameter.in}:${parameter.name}`,
        placeholder: String(exampleOf(api, parameter.schema)),
        ...(parameter.required ? { required: "" } : {}),
      }),
    )
  );
  const content = requestBody?.content ?? {};
  if (content["application/json"]) {
    inputs.push(el("textarea", { name: "json", spellcheck: "false" }, JSON.stringify(example.json, null, 2)));
  }
  if (content["multipart/form-data"]) {
    const { properties } = resolve(api, content["multipart/form-data"].schema);
    for (const name of Object.keys(properties)) {
      inputs.push(
        el("label", {}, name, el("input", { name: `form:${name}`, type: name === "file" ? "file" : "text" })),
      );
    }
  }
  const answer = el("div");
  return el(
    "form",
    {
      onsubmit: async (event) => {
        event.preventDefault();
        const started = performance.now();
        try {
          const response = await send({ method, path }, new FormData(event.target));
          answer.replaceChildren(await shown(response, performance.now() - started));
        } catch (error) {
          answer.replaceChildren(el("p", { class: "error" }, String(error)));
        }
      },
    },
    inputs,
    el("div", {}, el("button", { class: "send" }, "Send")),
    answer,
  );
}

function send({ method, path }, values) {
  const headers = keyField.value ? { "x-api-key": keyField.value } : {};
  const query = new URLSearchParams();
  const upload = new FormData();
  let target = path;
  let body;
  for (const [field, value] of values) {
    const [place, name] = field.split(/:(.*)/s);
    if (place === "json") {
      headers["content-type"] = "application/json";
      body = value;
    } else if (place === "form") {
      body = upload;
      if (value instanceof File ? value.name : value) upload.set(name, value);
    } else if (value === "") continue;
    else if (place === "path") target = target.replace(`{${name}}`, encodeURIComponent(value));
    else if (place === "query") query.set(name, value);
    else headers[name] = value;
  }
  const search = query.size ? `?${query}` : "";
  return fetch(target + search, { method: method.toUpperCase(), headers, body });
}

async function shown(response, tookMs) {
  const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  const head = `${response.status} ${response.statusText} in ${Math.round(tookMs)} ms\n${headers}\n\n`;
  if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
    const pre = el("pre", {}, head);
    void follow(response, pre);
    return pre;
  }
  const text = await response.text();
  try {
    return el("pre", {}, head + JSON.stringify(JSON.parse(text), null, 2));
  } catch {
    return el("pre", {}, head + text.slice(0, 20_000));
  }
}

/** Shows a stream as it comes, until the page is left. */
async function follow(response, pre) {
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) pre.append(piece);
}
