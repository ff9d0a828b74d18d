// SPDX-License-Identifier: BSD-3-Clause
// Asks the dashboard's own scripts: { told, packed, queries } in; for each query what it finds, as
// { id: ["backend line", ...] }, or where it is wrong, as { from, to, message }, out.
import { readFileSync } from "node:fs";
import { unpack } from "../../../ci/src/torch_backend_ci/dashboard/static/index.js";
import { QueryError, search } from "../../../ci/src/torch_backend_ci/dashboard/static/query.js";

const { told, packed, queries } = JSON.parse(readFileSync(0, "utf8"));
const index = unpack(told, packed);

function answer(query) {
  try {
    const found = search(query, index);
    return Object.fromEntries(found.map(({ check, series }) => [check.id, series.map((s) => `${s.backend} ${s.line}`)]));
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    return { from: error.from, to: error.to, message: error.message };
  }
}

console.log(JSON.stringify(queries.map(answer)));
