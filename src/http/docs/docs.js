/** The API reference: made in the browser from `/openapi.json`, with nothing from anywhere else. */
import { el, prose } from "./dom.js";
import { exampleOf, resolve, rowsOf, typeOf } from "./schema.js";
import { tryIt } from "./try_it.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
const main = document.querySelector("main");
const nav = document.querySelector("nav");

try {
  const response = await fetch("openapi.json");
  show(await response.json());
} catch (error) {
  main.replaceChildren(el("p", { class: "error" }, `The reference cannot be shown: ${error}`));
}

function show(api) {
  document.querySelector("#version").textContent = api.info.version;
  const operations = Object.entries(api.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => ({ ...item[method], method, path }))
  );
  main.replaceChildren(...prose(api.info.description));
  for (const { name, description } of api.tags) {
    const own = operations.filter(({ tags }) => tags.includes(name));
    section(name, description, own.map((operation) => article(api, operation)));
  }
  section(
    "Event types",
    "What webhooks are sent, and what the feed holds.",
    Object.entries(api.webhooks).map(([name, { post }]) => event(api, name, post)),
  );
  section("Errors", "Every error is `application/problem+json` with one of these codes.", [errors(operations)]);
  // The target of a link like #error-quota_exceeded is there only now.
  showTarget();
  addEventListener("hashchange", showTarget);
}

/** Goes to what the address names, and marks it: a row near the end of the page cannot come to the top. */
function showTarget() {
  document.querySelector(".target")?.classList.remove("target");
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) return;
  target.classList.add("target");
  target.scrollIntoView();
}

function section(name, description, articles) {
  main.append(el("h2", { id: name.toLowerCase().replaceAll(" ", "-") }, name), ...prose(description), ...articles);
  const links = articles.map((item) =>
    item.dataset.title ? el("a", { href: `#${item.id}` }, item.dataset.title) : null
  );
  nav.append(
    el("h2", {}, el("a", { href: `#${name.toLowerCase().replaceAll(" ", "-")}` }, name)),
    ...links.filter(Boolean),
  );
}

function article(api, operation) {
  const { operationId, summary, description = "", method, path, parameters = [], requestBody, responses } = operation;
  const [type, content] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  return el(
    "article",
    { id: operationId, "data-title": summary },
    el("h3", {}, summary),
    el("p", { class: "route" }, el("span", { class: `method ${method}` }, method.toUpperCase()), path),
    prose(description),
    el("p", { class: "soft" }, keyForm(operation)),
    parameters.length ? [el("h4", {}, "Parameters"), parameterTable(api, parameters)] : null,
    content ? [el("h4", {}, `Body (${type})`), table(rowsOf(api, content.schema))] : null,
    el("h4", {}, "Answers"),
    Object.entries(responses).map(([status, response]) => answer(api, status, response)),
    tryIt(api, operation),
  );
}

function keyForm({ security }) {
  if (security.length === 0) return "Needs no key.";
  return security.length === 1
    ? "Key in the header x-api-key."
    : "Key in the header x-api-key, or as Authorization: Bearer.";
}

function parameterTable(api, parameters) {
  return table(parameters.map(({ name, in: place, required, description = "", schema }) => ({
    name,
    type: `${place}: ${typeOf(api, schema)}`,
    required,
    description,
  })));
}

function table(rows) {
  return el(
    "table",
    {},
    rows.map(({ name, type, required, description }) =>
      el(
        "tr",
        {},
        el("td", {}, el("code", {}, name), required ? "" : el("span", { class: "soft" }, " optional")),
        el("td", {}, el("span", { class: "soft" }, type), prose(description)),
      )
    ),
  );
}

function answer(api, status, { description, content = {} }) {
  const [type, body] = Object.entries(content)[0] ?? [];
  const example = body && type.endsWith("json")
    ? body.examples ?? { example: { value: exampleOf(api, body.schema) } }
    : {};
  return el(
    "details",
    {},
    el("summary", {}, `${status} `, el("span", { class: "soft" }, description.replaceAll("`", ""))),
    type === "application/json" ? table(rowsOf(api, body.schema)) : null,
    Object.values(example).map(({ value }) => el("pre", {}, JSON.stringify(value, null, 2))),
  );
}

function event(api, name, { summary, requestBody }) {
  const { schema } = requestBody.content["application/json"];
  return el(
    "article",
    { id: `event-${name}`, "data-title": name },
    el("h3", {}, name),
    prose(summary),
    table(rowsOf(api, resolve(api, schema))),
  );
}

/** Every code that some operation may answer, with its status and its meaning. */
function errors(operations) {
  const known = new Map();
  for (const { responses } of operations) {
    for (const { content = {} } of Object.values(responses)) {
      for (const [code, { value }] of Object.entries(content["application/problem+json"]?.examples ?? {})) {
        known.set(code, value);
      }
    }
  }
  const rows = [...known].sort(([, a], [, b]) => a.status - b.status).map(([code, { status, title }]) =>
    el(
      "tr",
      { id: `error-${code}` },
      el("td", {}, el("code", {}, code)),
      el("td", {}, String(status)),
      el("td", {}, title),
    )
  );
  return el("table", {}, rows);
}
