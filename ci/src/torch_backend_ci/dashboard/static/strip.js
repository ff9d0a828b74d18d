// SPDX-License-Identifier: BSD-3-Clause
// How a check came out in every run of a series, as dashboard/pictures.py draws it for requirements.

const SVG = "http://www.w3.org/2000/svg";
const CELLS = 60; // Runs that are shown as cells.
const CELL = 12; // Pixels.
const LONGEST = 480;

function svg(name, attributes, ...content) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

// `runs` are [id, started]; a spell is { outcome, evidence, first, last }; `word` gives { tone, name } of an outcome.
export function strip(runs, spells, word) {
  const paths = spells.map((one) => path(word(one.outcome).tone, one, 8, title(runs, one, word)));
  const fell = spells.filter(({ evidence }) => evidence === "fallback").map((one) => path("fell", one, 14.5));
  return svg("svg", {
    class: runs.length > CELLS ? "strip" : "strip cells",
    viewBox: `0 0 ${runs.length} 16`,
    width: Math.min(CELL * runs.length, LONGEST),
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": spelled(runs, spells, word),
  }, ...paths, ...fell);
}

function path(tone, { first, last }, height, ...content) {
  return svg("path", { class: tone, d: `M${first}.1 ${height}h${last - first}.8` }, ...content);
}

function title(runs, one, word) {
  const by = one.evidence === "fallback" ? " by fallback" : "";
  return svg("title", {}, `${word(one.outcome).name}${by}, ${span(runs, one)}`);
}

function span(runs, { first, last }) {
  const [from, to] = [runs[first][1].slice(0, 10), runs[last][1].slice(0, 10)];
  return first === last ? `1 run: ${from}` : `${last - first + 1} runs: ${from} to ${to}`;
}

function spelled(runs, spells, word) {
  const last = spells.at(-1);
  const when = last.last === runs.length - 1 ? "Now" : "Last";
  const before = spells.length > 1 ? `; before that ${word(spells.at(-2).outcome).name}` : "";
  const more = spells.length > 2 ? ` and ${spells.length - 2} more changes` : "";
  return `${when} ${word(last.outcome).name}, ${span(runs, last)}${before}${more}`;
}
