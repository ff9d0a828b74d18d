// SPDX-License-Identifier: BSD-3-Clause
// Light or dark by choice. Runs before the page is painted; without it the system's setting decides.
"use strict";
(() => {
  const root = document.documentElement;
  const read = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const keep = (theme) => { try { localStorage.setItem("theme", theme); } catch { /* not kept, but shown */ } };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const current = () => root.dataset.theme ?? (system.matches ? "dark" : "light");
  const stored = read();
  if (stored === "dark" || stored === "light") root.dataset.theme = stored;
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (!button) return;
    const show = () => {
      const other = current() === "dark" ? "light" : "dark";
      button.dataset.to = other;
      button.setAttribute("aria-label", `Show in ${other} colours`);
      button.title = button.getAttribute("aria-label");
    };
    button.addEventListener("click", () => {
      root.dataset.theme = button.dataset.to;
      keep(root.dataset.theme);
      show();
    });
    system.addEventListener("change", show);
    show();
    button.hidden = false;
  });
})();
