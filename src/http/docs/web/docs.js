/** The API reference, rendered in the browser from `/openapi.json` alone. */
import { jsonBox } from "./colours.js";
import { el, menu, prose } from "./dom.js";
import { exampleOf, resolve, rowsOf, typeOf } from "./schema.js";
import "./search.js";
import { addSection, followScroll } from "./side.js";
import { tryIt } from "./try_it.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
const main = document.querySelector("main");

menu();
try {
  const response = await fetch("openapi.json");
  show(await response.json());
} catch (error) {
  main.append(el("p", { class: "error", role: "alert" }, `The reference could not be loaded: ${error}`));
} finally {
  document.querySelector("#loading").remove();
}

function show(api) {
  document.querySelector("#version").textContent = api.info.version;
  const operations = Object.entries(api.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => ({ ...item[method], method, path }))
  );
  main.append(...prose(api.info.description));
  for (const { name, description } of api.tags) {
    const own = operations.filter(({ tags }) => tags.includes(name));
    section(name, description, own.map((operation) => article(api, operation)));
  }
  section(
    "Event types",
    "The events that are sent to webhooks and listed in the feed.",
    Object.entries(api.webhooks).map(([name, item]) => event(api, name, resolve(api, item).post)),
  );
  const rows = errors(operations);
  section("Errors", "Every error response is `application/problem+json` with one of these codes.", [table(rows)]);
  followScroll([...main.querySelectorAll("article")]);
  // The target of a link like #error-quota_exceeded is there only now.
  showTarget();
  addEventListener("hashchange", showTarget);
}

/** Scrolls to what the address names, and marks it: a row near the end of the page cannot scroll to the top. */
function showTarget() {
  document.querySelector(".target")?.classList.remove("target");
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) return;
  target.classList.add("target");
  target.scrollIntoView();
}

function section(name, description, parts) {
  const id = name.toLowerCase().replaceAll(" ", "-");
  main.append(el("h2", { id }, name), ...prose(description), ...parts);
  addSection(
    id,
    name,
    parts.filter(({ dataset }) => dataset.title).map((part) => ({ id: part.id, title: part.dataset.title })),
  );
}

/** A part of the page that has a link of its own. */
function part(id, title, content) {
  const heading = el("h3", {}, el("a", { href: `#${id}`, class: "anchor" }, title));
  return el("article", { id, "data-title": title }, heading, content);
}

function halves(told, shown) {
  return el("div", { class: "halves" }, el("div", {}, told), el("div", { class: "beside" }, shown));
}

function article(api, operation) {
  const { operationId, summary, description = "", method, path, parameters = [], requestBody, responses } = operation;
  const [type, content] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  const fields = content ? rowsOf(api, content.schema) : [];
  const { samples, form } = tryIt(api, operation);
  return part(operationId, summary, [
    el("p", { class: "route" }, el("span", { class: `method ${method}` }, method.toUpperCase()), path),
    halves([
      prose(description),
      el("div", { class: "soft" }, prose(keyForm(operation))),
      parameters.length ? [el("h4", {}, "Parameters"), parameterTable(api, parameters)] : null,
      content ? [el("h4", {}, `Body (${type})`), fieldTable(fields)] : null,
      el("h4", {}, "Responses"),
      Object.entries(responses).map(([status, response]) => answer(api, status, response)),
    ], [samples, form]),
  ]);
}

function keyForm({ security }) {
  if (security.length === 0) return "No API key needed.";
  return security.length === 1
    ? "API key in the `x-api-key` header."
    : "API key in the `x-api-key` header, or as `Authorization: Bearer`.";
}

function parameterTable(api, parameters) {
  return fieldTable(parameters.map(({ name, in: place, required, description = "", schema }) => ({
    name,
    type: `${place}: ${typeOf(api, schema)}`,
    required,
    description,
  })));
}

function table(rows) {
  return el("table", {}, el("tbody", {}, rows));
}

function fieldTable(rows) {
  return table(rows.map(({ name, type, required, description }) =>
    el("tr", {}, [
      el("td", {}, el("code", {}, name), required ? "" : el("span", { class: "soft" }, " optional")),
      el("td", {}, el("span", { class: "soft" }, type), prose(description)),
    ])
  ));
}

function answer(api, status, { description, content = {} }) {
  const [type, body] = Object.entries(content)[0] ?? [];
  const example = body && type.endsWith("json")
    ? body.examples ?? { example: { value: exampleOf(api, body.schema) } }
    : {};
  const meaning = el("span", { class: "soft" }, description.replaceAll("`", ""));
  const details = el("details", {}, el("summary", {}, `${status} `, meaning));
  // There are about a hundred; each is rendered when it is opened.
  details.addEventListener("toggle", () => {
    const rows = type === "application/json" ? [fieldTable(rowsOf(api, body.schema))] : [];
    details.append(...rows, ...Object.values(example).map(({ value }) => jsonBox(JSON.stringify(value, null, 2))));
  }, { once: true });
  return details;
}

function event(api, name, { summary, requestBody }) {
  const { schema } = requestBody.content["application/json"];
  const rows = rowsOf(api, resolve(api, schema));
  const example = jsonBox(JSON.stringify(exampleOf(api, schema), null, 2));
  return part(`event-${name}`, name, [
    halves([prose(summary), fieldTable(rows)], [el("h4", {}, "Example"), example]),
  ]);
}

/** A row for each error code that an operation may answer, with its status and meaning. */
function errors(operations) {
  const known = new Map();
  for (const { responses } of operations) {
    for (const { content = {} } of Object.values(responses)) {
      for (const [code, { value }] of Object.entries(content["application/problem+json"]?.examples ?? {})) {
        known.set(code, value);
      }
    }
  }
  return [...known].sort(([, a], [, b]) => a.status - b.status).map(([code, { status, title }]) =>
    el("tr", { id: `error-${code}` }, [el("code", {}, code), String(status), title].map((cell) => el("td", {}, cell)))
  );
}
