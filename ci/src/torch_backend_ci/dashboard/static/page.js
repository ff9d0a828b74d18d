// SPDX-License-Identifier: BSD-3-Clause
// What the pages with scripts share. Texts become text nodes, never markup.

export const ROOT = new URL("..", import.meta.url);

// element("a", { href }, "text", node, ...)
export function element(name, attributes = {}, ...content) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

// A copy of what the page keeps in <template id=...>.
export function copy(id) {
  return document.getElementById(id).content.cloneNode(true);
}

// A link to a page of the site.
export function link(path, text, class_ = "") {
  return element("a", { href: new URL(path, ROOT), class: class_ }, visible(text));
}

export function checkLink(id) {
  // As in dashboard/paths.py.
  return link(`check.html?id=${encodeURIComponent(id)}`, id, "id");
}

// Characters that one would not see, or that reorder others, as escapes: \u202e.
export function visible(text) {
  return text.replace(/[^\P{C}\t\n]|[\p{Zl}\p{Zp}]/gu, (char) => {
    const code = char.codePointAt(0).toString(16);
    if (code.length < 3) return `\\x${code.padStart(2, "0")}`;
    return code.length < 5 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
  });
}

export async function load(path) {
  const answer = await fetch(new URL(path, ROOT));
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${answer.statusText}`);
  return answer.json();
}

// "1 check", "2 checks".
export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

// Rows, as functions that make them, into a table body; the button brings the next ones.
export function inParts(rows, body, button, size = 100) {
  const rest = [...rows];
  const more = () => {
    const made = rest.splice(0, size).map((make) => make());
    body.append(...made);
    button.hidden = !rest.length;
    button.textContent = `Show more (${rest.length.toLocaleString("en")} left)`;
    return made[0];
  };
  button.onclick = () => more().querySelector("a").focus();
  body.replaceChildren();
  more();
}
