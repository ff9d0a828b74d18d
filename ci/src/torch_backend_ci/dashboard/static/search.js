// SPDX-License-Identifier: BSD-3-Clause
// The page of the search: asks what stands in the box, or in the address, and lists what is found.
import { unpack } from "./index.js";
import { checkLink, copy, count, element, inParts, load, ROOT } from "./page.js";
import { QueryError, search } from "./query.js";

const SERIES = 6; // Of a check.
const SPELLS = 4; // Of a series.

const at = (id) => document.getElementById(id);
let index; // A promise, once something was asked.

async function everything() {
  const told = await load("api/search.json");
  return unpack(told, await Promise.all(told.series.map(({ file }) => load(file))));
}

async function ask() {
  const text = new URLSearchParams(location.search).get("q") ?? "";
  at("query").value = text;
  at("error").replaceChildren();
  at("query").removeAttribute("aria-invalid");
  at("results").hidden = true;
  at("count").textContent = text.trim() ? "Searching …" : "";
  if (!text.trim()) return;
  try {
    index ??= everything();
    show(search(text, await index), await index);
  } catch (error) {
    complain(error, text);
  }
}

function complain(error, text) {
  at("count").textContent = "";
  if (!(error instanceof QueryError)) {
    index = undefined; // To be loaded again by the next query.
    at("error").append(element("p", {}, `The search could not load what it needs: ${error.message}`));
    return;
  }
  const wrong = element("mark", {}, text.slice(error.from, error.to) || "\u2038");
  at("query").setAttribute("aria-invalid", "true");
  at("error").append(
    element("p", {}, `Character ${error.from + 1}: ${error.message}.`),
    element("p", {}, element("code", {}, text.slice(0, error.from), wrong, text.slice(error.to))),
  );
}

function show(found, { states }) {
  const pairs = found.reduce((sum, { series }) => sum + series.length, 0);
  at("count").textContent = found.length
    ? `${count(found.length, "check")}, ${count(pairs, "result")}.`
    : "Nothing is found.";
  at("results").hidden = !found.length;
  inParts(found.map(({ check, series }) => () => row(check, series, states)), at("rows"), at("more"));
}

function row(check, series, states) {
  const requirements = check.requirements.flatMap((id) => [requirementLink(id), " "]);
  const lines = series.slice(0, SERIES).map((one) => line(check, one, states));
  if (series.length > SERIES) lines.push(element("li", { class: "dim" }, `and ${series.length - SERIES} more`));
  return element("tr", {},
    element("th", { scope: "row" }, checkLink(check.id)),
    element("td", {}, ...requirements),
    element("td", {}, element("ul", { class: "plain" }, ...lines)));
}

function requirementLink(id) {
  return element("a", { href: new URL(`requirement/${id}.html`, ROOT), class: "req" }, id);
}

function line(check, series, states) {
  const result = series.result(check);
  const parts = [element("bdi", {}, series.backend), ` torch ${series.line}: `, copy(`outcome-${result?.outcome ?? "absent"}`)];
  if (result?.evidence) parts.push(" ", copy(`evidence-${result.evidence}`));
  const past = before(check, series, states);
  if (past) parts.push(" ", element("span", { class: "dim" }, past));
  return element("li", {}, ...parts);
}

// "before: pass in 3 runs, fail in 1 run": the spells before the last.
function before(check, series, states) {
  const spells = series.spells(check);
  const told = spells.slice(0, -1).map(([letter, first], i) => {
    const { outcome, evidence } = states.find((state) => state.letter === letter) ?? { outcome: "absent" };
    return `${outcome}${evidence === "fallback" ? " by fallback" : ""} in ${count(spells[i + 1][1] - first, "run")}`;
  });
  if (!told.length) return "";
  return `before: ${told.length > SPELLS ? "…, " : ""}${told.slice(-SPELLS).join(", ")}`;
}

at("without").hidden = true;
at("form").hidden = false;
at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  history.pushState(null, "", `?${new URLSearchParams({ q: at("query").value })}`);
  ask();
});
addEventListener("popstate", ask);
ask();
