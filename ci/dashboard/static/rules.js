// SPDX-License-Identifier: BSD-3-Clause
// What changed between two runs, by the rules of conformance/results/comparison.py as far as a
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

// Why two runs must not be compared: the names of what they did not ask alike, with both answers.
export function differences(old, new_) {
  return Object.keys(old).filter((name) => !same(old[name], new_[name]))
    .map((name) => ({ name, old: said(old[name]), new: said(new_[name]) }));
}

// Capabilities that were said otherwise; an entry is { value, source }.
export function capabilities(old, new_) {
  const stated = (entry) => (entry ? `${entry.value ? "there" : "absent"}, ${entry.source}` : "unknown");
  return [...new Set([...Object.keys(old), ...Object.keys(new_)])].sort()
    .map((id) => ({ id, old: stated(old[id]), new: stated(new_[id]) }))
    .filter((change) => change.old !== change.new);
}

function same(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}

function said(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}
