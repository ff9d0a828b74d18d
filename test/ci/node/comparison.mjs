// SPDX-License-Identifier: BSD-3-Clause
// Asks the dashboard's own rules: { moves, cases: [[old, new, across], ...] } in, comparisons out.
import { readFileSync } from "node:fs";
import { compare } from "../../../ci/src/torch_backend_ci/dashboard/static/rules.js";

const { moves, cases } = JSON.parse(readFileSync(0, "utf8"));
const run = ({ results, ...told }) => ({ ...told, results: new Map(Object.entries(results)) });
console.log(JSON.stringify(cases.map(([old, new_, across]) => compare(moves, run(old), run(new_), across))));
