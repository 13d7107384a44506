/** The request of an operation: samples of it in the reader's language, and a form that changes and sends it. */
import { colour, jsonBox } from "./colours.js";
import { el } from "./dom.js";
import { key, sampleBox } from "./reader.js";
import { exampleOf, resolve } from "./schema.js";
import { KEY, SAMPLES } from "./samples.js";

/** How the colours name the languages of the samples. */
const COLOURS = { curl: "sh", JavaScript: "js", Python: "python", PHP: "php", Go: "go" };

/** `{ samples, form }`: the samples show what the form says, with the reader's key. */
export function tryIt(api, operation) {
  const fields = formOf(api, operation);
  const { box, redraw } = sampleBox(Object.keys(SAMPLES), (pre, language) => {
    const request = requestOf(api, operation, new FormData(fields));
    // While JSON is being typed, the last complete request stays.
    if (request) colour(pre, SAMPLES[language](request), COLOURS[language]);
  });
  fields.addEventListener("input", redraw);
  return { samples: box, form: el("details", {}, el("summary", {}, "Try it"), fields) };
}

/** The request that the form describes, completed with the document's examples; null when its JSON is invalid. */
function requestOf(api, { method, path, parameters = [], requestBody, security }, values) {
  const given = (place, name) => values.get(`${place}:${name}`);
  const url = path.replaceAll(/\{(\w+)\}/g, (_, name) => {
    const { schema } = parameters.find((parameter) => parameter.in === "path" && parameter.name === name);
    return encodeURIComponent(given("path", name) || exampleOf(api, schema)).replaceAll("%40", "@");
  });
  const query = new URLSearchParams();
  const headers = security.length > 0 ? { "x-api-key": key() || KEY } : {};
  for (const { in: place, name } of parameters) {
    const value = given(place, name);
    if (value && place === "query") query.set(name, value);
    if (value && place === "header") headers[name] = value;
  }
  const root = new URL(".", location.href).href.slice(0, -1);
  const request = { method: method.toUpperCase(), url: root + url + (query.size ? `?${query}` : ""), headers };
  const upload = requestBody?.content["multipart/form-data"];
  if (upload) {
    const typed = [...values].filter(([name, value]) => name.startsWith("form:") && typeof value === "string" && value)
      .map(([name, value]) => [name.slice("form:".length), value]);
    const file = given("form", "file")?.name || "picture.png";
    request.form = { ...exampleOf(api, upload.schema), ...Object.fromEntries(typed), file: { file } };
  } else if (values.has("json")) {
    try {
      request.json = JSON.parse(values.get("json"));
    } catch {
      return null;
    }
  }
  return request;
}

const labelled = (label, attributes) => el("label", {}, label, el("input", attributes));

function formOf(api, operation) {
  const { method, path, parameters = [], requestBody } = operation;
  const inputs = parameters.filter((parameter) => parameter.in !== "cookie").map((parameter) =>
    labelled(parameter.name, {
      name: `${parameter.in}:${parameter.name}`,
      placeholder: String(exampleOf(api, parameter.schema)),
      autocomplete: "off",
      required: parameter.required ? "" : null,
    })
  );
  const content = requestBody?.content ?? {};
  if (content["multipart/form-data"]) {
    const { properties } = resolve(api, content["multipart/form-data"].schema);
    for (const name of Object.keys(properties)) {
      inputs.push(labelled(name, { name: `form:${name}`, type: name === "file" ? "file" : "text" }));
    }
  } else if (content["application/json"]) {
    const example = JSON.stringify(exampleOf(api, content["application/json"].schema), null, 2);
    inputs.push(el("textarea", { name: "json", "aria-label": "Body", spellcheck: "false" }, example));
  }
  const answer = el("div", { role: "status" });
  let isSending = false;
  let shownNow = new AbortController();
  return el(
    "form",
    {
      onsubmit: async (event) => {
        event.preventDefault();
        if (isSending) return;
        isSending = true;
        // A stream that is on the page ends.
        shownNow.abort();
        shownNow = new AbortController();
        const started = performance.now();
        try {
          const response = await send({ method, path }, new FormData(event.target), shownNow.signal);
          answer.replaceChildren(await shown(response, performance.now() - started));
        } catch (error) {
          answer.replaceChildren(el("p", { class: "error" }, String(error)));
        } finally {
          isSending = false;
        }
      },
    },
    inputs,
    // The second half of a double click sends nothing, however soon the first was answered.
    el("div", {}, [
      el("button", { class: "send", onclick: (event) => event.detail > 1 && event.preventDefault() }, "Send"),
    ]),
    answer,
  );
}

function send({ method, path }, values, signal) {
  const headers = key() ? { "x-api-key": key() } : {};
  const query = new URLSearchParams();
  const upload = new FormData();
  // Relative to the page, so that it also works below a proxy's path.
  let target = path.slice(1);
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
  return fetch(target + search, { method: method.toUpperCase(), headers, body, signal });
}

async function shown(response, tookMs) {
  const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  const head = `${response.status} ${response.statusText} in ${Math.round(tookMs)} ms\n${headers}\n\n`;
  if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
    const box = jsonBox(head);
    follow(response, box.querySelector("pre")).catch(() => {});
    return box;
  }
  const text = await response.text();
  try {
    return jsonBox(head + JSON.stringify(JSON.parse(text), null, 2));
  } catch {
    return jsonBox(head + text.slice(0, 20_000));
  }
}

/** Shows a stream as it comes, until the page is left or another request is made. */
async function follow(response, pre) {
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) pre.append(chunk);
}
