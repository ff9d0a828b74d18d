// SPDX-License-Identifier: BSD-3-Clause
// What changed between two runs, by the rules of conformance/src/torch_conformance/results/comparison.py as far as a
// series tells them: by outcome and evidence. `lattice` is `outcomes` of api/search.json.

// A result is { outcome, evidence }; undefined where the run did not have the check.
export function changesOf(lattice, before, after) {
  if (!before && !after) return [];
  if (!after) return [{ list: "removed", old: before.outcome, new: "gone" }];
  if (!before) return [{ list: lattice[after.outcome].bad ? "regressions" : "added", old: "new", new: after.outcome }];
  return [...byOutcome(lattice, before.outcome, after.outcome), ...byEvidence(before.evidence, after.evidence)];
}

function byOutcome(lattice, before, after) {
  if (before === after) return [];
  const step = lattice[after].rank - lattice[before].rank;
  let list = step < 0 ? "regressions" : step > 0 ? "improvements" : "changed";
  if (lattice[before].bad && lattice[after].silent) list = "withdrawn";
  return [{ list, old: before, new: after }];
}

function byEvidence(before, after) {
  if (before === after) return [];
  if (after === "fallback" && before !== null) return [{ list: "regressions", old: before, new: after }];
  if (before === "fallback" && after !== null) return [{ list: "improvements", old: before, new: after }];
  return [{ list: "changed", old: before ?? "unknown", new: after ?? "unknown", evidence: true }];
}

// What is not alike, with both values in words.
function differences(old, new_) {
  return Object.keys(old).filter((name) => !same(old[name], new_[name]))
    .map((name) => ({ name, old: said(old[name]), new: said(new_[name]) }));
}

// Capabilities that were said otherwise; an entry is { value, source }.
function capabilities(old, new_) {
  const stated = (entry) => (entry ? `${entry.value ? "there" : "absent"}, ${entry.source}` : "unknown");
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
export function compare(lattice, old, new_, across = []) {
  const unlike = differences(old.asks, new_.asks);
  const refused = unlike.filter(({ name }) => !across.includes(name));
  if (refused.length) return { refused };
  const lists = { regressions: [], improvements: [], withdrawn: [], changed: [], added: [], removed: [] };
  for (const id of [...new Set([...old.results.keys(), ...new_.results.keys()])].sort()) {
    for (const { list, ...change } of changesOf(lattice, old.results.get(id), new_.results.get(id))) {
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
