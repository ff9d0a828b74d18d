// SPDX-License-Identifier: BSD-3-Clause
// The page of a check: what the document of its topic says of it (dashboard/pages/check.py).
import { LETTERS, stretches } from "./index.js";
import { copy, count, element, link, load, ROOT, visible } from "./page.js";
import { strip } from "./strip.js";

const GONE = "gone";
const at = (id) => document.getElementById(id);

// { check, told, runs } of an id; the runs of each series are [id, started], oldest first.
async function find(id) {
  const topic = id.split(":")[0];
  if (!/^\w[\w.+-]*\/\w[\w.+-]*$/.test(topic)) throw new Error(`${id || "nothing"} is not the id of a check`);
  const told = await load(`api/check/${topic}.json`);
  const listed = (await load(told.runs)).series;
  const same = (one) => (other) => one.backend === other.backend && one.line === other.line;
  const runs = told.series.map((one) => listed.find(same(one)).runs);
  for (const { checks, ...shared } of told.groups) {
    const check = checks.find(({ name }) => (name ? `${topic}:${name}` : topic) === id);
    if (check) return { check: { ...check, ...shared, id }, told, runs };
  }
  throw new Error(`no complete run has had the check ${id}`);
}

// What the table says of a course: outcome now, since which run, what it was before.
function read(course, { series, states, said }, runs) {
  const mine = runs[course.series];
  const spells = stretches(course.history).map(([letter, first], i, all) => {
    const [outcome, evidence] = states[LETTERS.indexOf(letter)] ?? [null, null];
    return { outcome, evidence, first, last: (all[i + 1]?.[1] ?? mine.length) - 1 };
  });
  const newest = spells.at(-1);
  const since = spells.findLastIndex(({ outcome }) => outcome !== newest.outcome) + 1;
  const older = spells.slice(0, since).findLast(({ outcome }) => outcome);
  return {
    ...course,
    of: series[course.series],
    runs: mine,
    spells: spells.filter(({ outcome }) => outcome),
    now: newest.outcome ?? GONE,
    evidence: newest.evidence,
    since: spells[since].first,
    older,
    said: said[course.said],
    before: course.last_bad && { ...course.last_bad, said: said[course.last_bad.said] },
  };
}

function show({ check, told, runs }) {
  const rows = check.courses.map((course) => read(course, told, runs));
  document.title = document.title.replace("A check", visible(check.id));
  at("id").replaceChildren(element("bdi", {}, visible(check.id)));
  at("counts").replaceChildren(...counts(rows));
  at("requirements").replaceChildren(...check.requirements.map((id) => element("li", {},
    link(`requirement/${id}.html`, id, "req"), ` ${visible(told.statements[id] ?? "is not in the catalogue any more.")} `)));
  at("rows").replaceChildren(...rows.map(row));
  const never = told.series.filter((_, i) => rows.every((one) => one.series !== i));
  at("never").hidden = !never.length;
  at("never").textContent = `No complete run had it: ${never.map(name).join(", ")}.`;
  say(at("said"), rows.filter((one) => one.said).sort((a, b) => Boolean(b.bad) - Boolean(a.bad))
    .map((one) => [one.said, one.now, one, one.runs.length - 1]));
  say(at("before"), rows.filter((one) => one.before?.said)
    .map((one) => [one.before.said, one.before.outcome, one, one.before.run])
    .sort((a, b) => (when(b) > when(a) ? 1 : -1)), true);
  at("document").href = new URL(`api/check/${told.topic}.json`, ROOT);
  at("check").hidden = false;
}

const when = ([, , one, run]) => one.runs[run][1];
const day = (moment) => moment.slice(0, 10);
const name = ({ backend, line }) => `${backend} torch ${line}`;

function counts(rows) {
  const found = new Map();
  for (const { now } of rows) found.set(now, (found.get(now) ?? 0) + 1);
  const parts = [...found].flatMap(([outcome, number], i) => [i ? ", " : "", copy(`outcome-${outcome}`), ` in ${number}`]);
  return [...parts, ` of ${count(rows.length, "column")}.`];
}

function row(one) {
  const { backend, line } = one.of;
  const now = element("td", {}, copy(`outcome-${one.now}`));
  if (one.evidence) now.append(" ", copy(`evidence-${one.evidence}`));
  return element("tr", {},
    element("th", { scope: "row" }, link(`backend/${backend}/index.html#torch-${line}`, `${backend} ${line}`)),
    now,
    element("td", {}, ...since(one)),
    element("td", {}, strip(one.runs, one.spells, outcomeOf)),
    element("td", { class: "n" }, seconds(one.seconds)));
}

function since({ runs, since, older }) {
  const first = link(`run/${runs[since][0]}.html`, day(runs[since][1]), "nowrap");
  if (!older) return [first, since ? ", new then" : ", always"];
  const pair = new URLSearchParams({ old: runs[older.last][0], new: runs[since][0] });
  return [first, ", was ", copy(`outcome-${older.outcome}`), " ", link(`compare/index.html?${pair}`, "compare")];
}

function outcomeOf(outcome) {
  const template = at(`outcome-${outcome}`);
  return { tone: template.dataset.tone, name: template.content.textContent.trim() };
}

// What several series say alike is shown once.
function say(section, all, dated = false) {
  const groups = new Map();
  for (const one of all) groups.set(one[0], [...(groups.get(one[0]) ?? []), one]);
  section.hidden = !groups.size;
  section.append(...[...groups.values()].map((group) => panel(group, dated)));
}

function panel(group, dated) {
  const [said, outcome] = group[0];
  const where = group.flatMap((one, i) => [i ? ", " : "", link(`run/${one[2].runs[one[3]][0]}.html`,
    `${one[2].of.backend} ${one[2].of.line}`), dated ? ` (${day(when(one))})` : ""]);
  const made = element("section", { class: "panel" }, element("h3", {}, copy(`outcome-${outcome}`), " on ", ...where));
  for (const [label, text] of [["Message", said.message], ["Reason", said.reason], ["To repeat it", said.repro]]) {
    if (text) made.append(element("p", { class: "dim" }, label), verbatim(label, text));
  }
  if (said.left_out) made.append(element("p", { class: "dim" }, `${count(said.left_out, "more character")} in the report.`));
  if (said.waiver) made.append(element("p", {}, "Decided by the expectation ", element("code", {}, visible(said.waiver)), "."));
  if (said.fallbacks) made.append(element("p", {}, `By CPU fallback: ${visible(said.fallbacks.join(", "))}`));
  return made;
}

function verbatim(label, text) {
  return element("pre", { tabindex: "0", role: "region", "aria-label": label },
    element("code", {}, element("bdi", {}, visible(text))));
}

function seconds(value) {
  if (value < 0.9995) return `${value < 0.00995 ? Number((value * 1000).toPrecision(2)) : Math.round(value * 1000)} ms`;
  return value < 59.95 ? `${value.toFixed(1)} s` : `${Math.floor(Math.round(value) / 60)} min ${Math.round(value) % 60} s`;
}

const asked = new URLSearchParams(location.search).get("id");
if (asked !== null) {
  at("without").hidden = true;
  try {
    show(await find(asked));
  } catch (error) {
    at("error").append(element("p", {}, `The check cannot be shown: ${visible(error.message)}`));
  }
}
