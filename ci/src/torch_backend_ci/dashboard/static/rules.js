// SPDX-License-Identifier: BSD-3-Clause
// What changed between two runs, as far as a series tells it: by outcome and evidence. The rules are in
// `moves` of api/search.json, a table that torch_conformance.results.comparison makes.

// A result is { outcome, evidence }; undefined where the run did not have the check.
export function changesOf(moves, before, after) {
  if (!before && !after) return [];
  const found = [moved(moves.outcome, before ? before.outcome : "new", after ? after.outcome : "gone")];
  if (before && after) {
    const change = moved(moves.evidence, before.evidence ?? "unknown", after.evidence ?? "unknown");
    found.push(change.list === "changed" ? { ...change, evidence: true } : change);
  }
  return found.filter(({ list }) => list);
}

function moved(table, old, new_) {
  return { list: table[old][new_], old, new: new_ };
}

// What is not alike, with both values in words.
function differences(old, new_) {
  return Object.keys(old).filter((name) => !same(old[name], new_[name]))
    .map((name) => ({ name, old: said(old[name]), new: said(new_[name]) }));
}

// Capabilities that were said otherwise; an entry is { value, source, broken? }.
function capabilities(old, new_) {
  const state = (entry) => (entry.broken ? "broken" : entry.value ? "there" : "absent");
  const stated = (entry) => (entry ? `${state(entry)}, ${entry.source}` : "unknown");
  return [...new Set([...Object.keys(old), ...Object.keys(new_)])].sort()
    .map((id) => ({ id, old: stated(old[id]), new: stated(new_[id]) }))
    .filter((change) => change.old !== change.new);
}

function same(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}

// As `plain` of conformance/src/torch_conformance/results/comparison.py says it.
function said(value) {
  if (Array.isArray(value)) return value.map(said).join(", ") || "none";
  if (value !== null && typeof value === "object") {
    return Object.entries(value).map(([name, item]) => `${name} ${said(item)}`).join(", ") || "none";
  }
  if (value === null || value === "") return "none";
  return String(value).replace(/\b([0-9a-f]{12})[0-9a-f]{28,}\b/g, "$1");
}

// Two runs, each { asks, notes, capabilities, results: Map of check -> result }, side by side:
// { refused } with what they did not ask alike, unless `across` names it, or
// { refused: [], across, notes, capabilities, lists: { regressions: [{ id, old, new }], ... } }.
export function compare(moves, old, new_, across = []) {
  const unlike = differences(old.asks, new_.asks);
  const refused = unlike.filter(({ name }) => !across.includes(name));
  if (refused.length) return { refused };
  const lists = { regressions: [], improvements: [], withdrawn: [], changed: [], added: [], removed: [] };
  for (const id of [...new Set([...old.results.keys(), ...new_.results.keys()])].sort()) {
    for (const { list, ...change } of changesOf(moves, old.results.get(id), new_.results.get(id))) {
      lists[list].push({ id, ...change });
    }
  }
  return {
    refused,
    across: unlike,
    notes: differences(old.notes, new_.notes),
    capabilities: capabilities(old.capabilities, new_.capabilities),
    lists,
  };
}
