// SPDX-License-Identifier: BSD-3-Clause
// On every page: a box above each table with data-filter="Filter checks", which hides the rows that
// have not all of its words. Without this script the tables are complete.
"use strict";
(() => {
  function filter(table) {
    const rows = Array.from(table.tBodies).flatMap((body) => Array.from(body.rows));
    const label = document.createElement("label");
    const input = document.createElement("input");
    const said = document.createElement("span");
    input.type = "search";
    said.className = "dim";
    said.setAttribute("role", "status");
    label.className = "filter";
    label.append(`${table.dataset.filter} `, input, " ", said);
    (table.closest(".wide") ?? table).before(label);
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        left += !row.hidden;
      }
      said.textContent = words.length ? `${left} of ${rows.length}` : "";
    });
  }

  addEventListener("DOMContentLoaded", () => document.querySelectorAll("table[data-filter]").forEach(filter));
})();
