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

export function checkLink(id) {
  // As in ci/dashboard/paths.py.
  const href = new URL(`check/${id.replaceAll(":", ".")}.html`, ROOT);
  return element("a", { href, class: "id" }, id);
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
