// SPDX-License-Identifier: BSD-3-Clause
// The page that compares any two runs: chosen in its form, or named in the address (?old=ID&new=ID).
import { unpack } from "./index.js";
import { checkLink, copy, count, element, inParts, load, ROOT } from "./page.js";
import { compare } from "./rules.js";

const at = (id) => document.getElementById(id);
const SIDES = ["old", "new"];
const known = await load("api/compare/index.json").catch((error) => error);

// { series, place, started, id } of an aligned run; throws for any other.
function find(id) {
  for (const series of known.series) {
    const place = series.runs.findIndex(([one]) => one === id);
    if (place >= 0) return { id, series, place, started: series.runs[place][1] };
    const other = series.others.find(([one]) => one === id);
    if (other) throw new Error(`Run ${id} does not count: ${other[2]}.`);
  }
  throw new Error(`There is no run ${id} here.`);
}

async function read({ series, place }, told) {
  const of = told.series.find(({ backend, line }) => backend === series.backend && line === series.line);
  const [packed, { runs }] = await Promise.all([load(series.outcomes), load(series.told)]);
  const index = unpack({ ...told, series: [of] }, [packed]);
  const results = index.checks.filter((check) => check.series.length)
    .map((check) => [check.id, index.series[0].result(check, place)]).filter(([, result]) => result);
  return { ...Object.assign({}, ...runs.slice(0, place + 1)), results: new Map(results) };
}

async function ask() {
  const query = new URLSearchParams(location.search);
  at("error").replaceChildren();
  at("refused").hidden = at("comparison").hidden = true;
  at("summary").textContent = "";
  if (!query.get("old") || !query.get("new")) return;
  try {
    const [old, new_] = SIDES.map((side) => find(query.get(side)));
    choose("old", old.series, old.id);
    choose("new", new_.series, new_.id);
    at("summary").textContent = "Comparing …";
    const told = await load("api/search.json");
    const across = (query.get("across") ?? "").split(",");
    show(old, new_, compare(told.moves, await read(old, told), await read(new_, told), across));
  } catch (error) {
    at("summary").textContent = "";
    at("error").append(element("p", {}, error.message));
  }
}

function show(old, new_, made) {
  const names = [old, new_].map(({ series, started }) => `${series.backend} torch ${series.line}, ${written(started)}`);
  if (made.refused.length) return refuse(old, new_, made.refused, names);
  const worse = made.lists.regressions.length;
  const gone = made.lists.removed.length;
  const judged = worse || gone ? `${count(worse, "regression")}, ${count(gone, "check")} gone.` : "Nothing got worse.";
  at("summary").textContent = `${names.join(" → ")}: ${judged}`;
  at("comparison").hidden = false;
  const place = `compare/${old.id}-${new_.id}.html`;
  at("page").hidden = !known.pages.includes(place);
  at("page").querySelector("a").href = new URL(place, ROOT);
  const notes = [
    ...[...made.across, ...made.notes].map((one) => [one.name, one]),
    ...made.capabilities.map((one) => [`capability ${one.id}`, one]),
  ];
  at("notes").replaceChildren(...notes.map(([name, one]) => element("li", {}, `${name}: ${one.old} → ${one.new}`)));
  if (!notes.length) at("notes").append(element("li", {}, "nothing"));
  for (const [name, changes] of Object.entries(made.lists)) fill(at(name), changes);
}

function refuse(old, new_, unlike, names) {
  at("summary").textContent = `${names.join(" and ")} are not compared.`;
  at("refused").hidden = false;
  at("unlike").replaceChildren(...unlike.map((one) => element("li", {}, `${one.name} differs: ${one.old} and ${one.new}`)));
  const across = unlike.map(({ name }) => name).join(",");
  at("across").href = `?${new URLSearchParams({ old: old.id, new: new_.id, across })}`;
}

function fill(section, changes) {
  section.hidden = !changes.length;
  section.querySelector("h2 .n").textContent = changes.length.toLocaleString("en");
  const rows = changes.map((one) => () => element("tr", {},
    element("th", { scope: "row" }, checkLink(one.id)), cell(one.old), cell(one.new)));
  inParts(rows, section.querySelector("tbody"), section.querySelector("button"));
}

function cell(value) {
  const id = [`outcome-${value}`, `evidence-${value}`].find(at);
  return element("td", {}, id ? copy(id) : value);
}

function written(moment) {
  return `${moment.slice(0, 10)} ${moment.slice(11, 16)} UTC`;
}

// Fills a side of the form, with the newest run if none is named.
function choose(side, series, id = series.runs.at(-1)?.[0]) {
  at(`${side}-series`).value = known.series.indexOf(series);
  const options = series.runs.map(([one, started]) => element("option", { value: one }, written(started)));
  at(side).replaceChildren(...options.reverse());
  at(side).value = id;
}

function start() {
  at("without").hidden = true;
  at("form").hidden = false;
  const some = known.series.filter(({ runs }) => runs.length);
  for (const side of SIDES) {
    const of = at(`${side}-series`);
    of.append(...some.map((one) => element("option", { value: known.series.indexOf(one) }, `${one.backend} torch ${one.line}`)));
    of.addEventListener("change", () => choose(side, known.series[of.value]));
    if (some.length) choose(side, some[0], some[0].runs.at(side === "old" ? -2 : -1)?.[0]);
  }
  at("form").addEventListener("submit", (event) => {
    event.preventDefault();
    const chosen = Object.fromEntries(SIDES.map((side) => [side, at(side).value]));
    history.pushState(null, "", `?${new URLSearchParams(chosen)}`);
    ask();
  });
  addEventListener("popstate", ask);
  ask();
}

if (known instanceof Error) at("error").append(element("p", {}, `The list of runs cannot be loaded: ${known.message}`));
else start();
