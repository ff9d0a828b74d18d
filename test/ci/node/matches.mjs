// SPDX-License-Identifier: BSD-3-Clause
// The oracle of test_label_globs.py: [[glob, ...], path] pairs in, whether each list matches out.
import { readFileSync } from "node:fs";
import { Minimatch } from "minimatch";

const compiled = new Map();

function compile(glob) {
  if (!compiled.has(glob)) compiled.set(glob, new Minimatch(glob, { dot: true }));
  return compiled.get(glob);
}

/** As in the `paths` of a GitHub workflow: each glob that names the path says yes or no. */
function matches(globs, path) {
  let hit = false;
  for (const glob of globs.map(compile)) {
    const named = glob.match(path) !== glob.negate; // match() has turned a negated glob around
    if (named) hit = !glob.negate;
  }
  return hit;
}

const { globs, cases } = JSON.parse(readFileSync(0, "utf8"));
const answers = cases.map(([list, path]) => matches(list.map((i) => globs[i]), path));
process.stdout.write(JSON.stringify(answers));
