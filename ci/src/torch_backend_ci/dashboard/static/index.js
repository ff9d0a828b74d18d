// SPDX-License-Identifier: BSD-3-Clause
// api/search.json and api/search/BACKEND/LINE.json, unpacked (dashboard/pages/search.py packs them).

export const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const ABSENT = "-";

// "A0B5" as [["A", 0], ["B", 5]]: a letter, and the run from which it holds.
export function stretches(told) {
  return Array.from(told.matchAll(/(\D)(\d+)/g), ([, letter, first]) => [letter, Number(first)]);
}

// One series: how each check came out in its aligned runs.
class Series {
  constructor(told, packed, states) {
    Object.assign(this, told); // backend, line, runs: how many
    this.packed = packed;
    this.states = states;
  }

  // The letter of its state in the newest run; "-" if that did not have the check.
  now(check) {
    return this.packed.now[check.place];
  }

  has(check) {
    return this.now(check) !== ABSENT || check.place in this.packed.spells;
  }

  // [[letter, first run], ...]
  spells(check) {
    const told = this.packed.spells[check.place];
    if (told === undefined) return [[this.now(check), 0]];
    return stretches(told);
  }

  // A letter for each run, oldest first.
  history(check) {
    const spells = this.spells(check);
    return spells.map(([letter, first], i) => letter.repeat((spells[i + 1]?.[1] ?? this.runs) - first)).join("");
  }

  // { outcome, evidence } in a run, the newest if none is named; undefined if it did not have the check.
  result(check, run = this.runs - 1) {
    const [letter] = this.spells(check).findLast(([, first]) => first <= run);
    return letter === ABSENT ? undefined : this.states[LETTERS.indexOf(letter)];
  }
}

// What query.js asks; `packed` are the files of the series, in the order of `told.series`.
export function unpack(told, packed) {
  const states = told.states.map(([outcome, evidence], i) => ({ outcome, evidence, letter: LETTERS[i] }));
  const checks = told.groups.flatMap(({ prefix, cases, ...shared }) =>
    cases.map((name) => ({ id: prefix + name, surface: prefix.split("/")[0], ...shared })));
  const series = told.series.map((one, i) => new Series(one, packed[i], states));
  checks.forEach((check, place) => {
    check.place = place;
    check.series = series.filter((one) => one.has(check));
  });
  return {
    outcomes: told.outcomes,
    moves: told.moves,
    evidence: told.evidence,
    states,
    series,
    checks: checks.sort((a, b) => (a.id < b.id ? -1 : 1)),
  };
}
