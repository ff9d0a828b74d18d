// SPDX-License-Identifier: BSD-3-Clause
// The query language of search.html, which documents it: text -> tree -> predicate. Pure functions.
import { changesOf } from "./rules.js";

export class QueryError extends Error {
  // What is wrong with the characters from `from` up to `to`.
  constructor(message, [from, to]) {
    super(message);
    this.from = from;
    this.to = to;
  }
}

const FIELDS = ["status", "evidence", "backend", "torch", "surface", "requirement", "level", "tier", "is"];
const IS = ["regression", "improvement", "changed", "new", "gone"];
const GROUPS = ["seq", "any", "all"];
const TOKEN = /(?<space>\s+)|(?<mark>[()])|"(?<quoted>[^"]*)"|(?<minus>-)|(?<word>[^\s()"]+)/y;

export function tokens(text) {
  const found = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const from = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (!match) throw new QueryError("this quote is never closed", [from, text.length]);
    const [kind, value] = Object.entries(match.groups).find(([, value]) => value !== undefined);
    if (kind !== "space") found.push({ kind, value, at: [from, TOKEN.lastIndex] });
  }
  return found;
}

// The tree: { op: "and" | "or", of: [...] }, { op: "not" | "any" | "all", of }, { op: "text", value },
// { op: "field", field, value }, { op: "seq", of: [{ value, at }] }; each with `at`. null asks nothing.
export function parse(text) {
  const rest = tokens(text);
  const end = [text.length, text.length];
  const next = () => rest[0] ?? { kind: "end", value: "", at: end };
  const isWord = (word) => next().kind === "word" && next().value.toLowerCase() === word;
  const isMark = (mark) => next().kind === "mark" && next().value === mark;

  function either() {
    const of = [both()];
    while (isWord("or")) rest.shift() && of.push(both());
    return joined("or", of);
  }

  function both() {
    const of = [one()];
    while (next().kind !== "end" && !isMark(")") && !isWord("or")) {
      if (isWord("and")) rest.shift();
      of.push(one());
    }
    return joined("and", of);
  }

  function one() {
    const token = rest.shift() ?? next();
    const word = token.kind === "word" ? token.value.toLowerCase() : null;
    if (token.kind === "minus" || word === "not") return { op: "not", of: one(), at: token.at };
    if (token.kind === "quoted") return { op: "text", value: token.value.toLowerCase(), at: token.at };
    if (token.value === "(") return inside(token);
    if (word === null || word === "or" || word === "and") throw new QueryError("a term is missing here", token.at);
    if (isMark("(") && next().at[0] === token.at[1]) return group(token, word);
    return term(token, word);
  }

  function inside(opened) {
    const made = either();
    if (!isMark(")")) throw new QueryError("this parenthesis is never closed", opened.at);
    rest.shift();
    return made;
  }

  function group(token, name) {
    if (!GROUPS.includes(name)) throw new QueryError(`there is ${listed(GROUPS)}, but no ${name}(...)`, token.at);
    const opened = rest.shift();
    if (name !== "seq") return { op: name, of: inside(opened), at: token.at };
    const of = [];
    while (next().kind === "word") of.push(rest.shift());
    if (!of.length) throw new QueryError("seq needs outcomes, oldest first: seq(pass fail)", token.at);
    if (next().kind === "end") throw new QueryError("this parenthesis is never closed", opened.at);
    if (!isMark(")")) throw new QueryError("only outcomes stand in seq(...)", next().at);
    rest.shift();
    return { op: "seq", of: of.map(({ value, at }) => ({ value: value.toLowerCase(), at })), at: token.at };
  }

  if (!rest.length) return null;
  const tree = either();
  if (rest.length) throw new QueryError("this parenthesis was never opened", next().at);
  return tree;
}

function joined(op, of) {
  return of.length === 1 ? of[0] : { op, of, at: [of[0].at[0], of.at(-1).at[1]] };
}

function term({ at }, word) {
  const [, field, value] = /^([a-z_]+):(.*)$/.exec(word) ?? [];
  if (field === undefined) return { op: "text", value: word, at };
  if (!FIELDS.includes(field)) {
    throw new QueryError(`no field is called ${field}: ${listed(FIELDS)}. Text with a colon needs quotes`, at);
  }
  if (!value) throw new QueryError(`${field}: needs a value right after the colon`, at);
  return { op: "field", field, value, at };
}

function listed(words) {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

// What the tree asks, as a function (check, series) -> boolean of `index` (see index.js); throws
// QueryError for a word that nothing in the index has.
export function predicate(tree, index) {
  if (tree === null) return () => true;
  return MEANINGS[tree.op](tree, index);
}

const MEANINGS = {
  and: ({ of }, index) => {
    const all = of.map((node) => predicate(node, index));
    return (check, series) => all.every((asks) => asks(check, series));
  },
  or: ({ of }, index) => {
    const all = of.map((node) => predicate(node, index));
    return (check, series) => all.some((asks) => asks(check, series));
  },
  not: ({ of }, index) => {
    const asks = predicate(of, index);
    return (check, series) => !asks(check, series);
  },
  any: ({ of }, index) => {
    const asks = predicate(of, index);
    return ofCheck((check) => check.series.some((series) => asks(check, series)));
  },
  all: ({ of }, index) => {
    const asks = predicate(of, index);
    return ofCheck((check) => check.series.every((series) => asks(check, series)));
  },
  text: ({ value }) => (check) => check.id.includes(value),
  field: (node, index) => VALUES[node.field](node, index),
  seq: ({ of }, index) => {
    const pattern = new RegExp(of.map((node) => letters(node, index)).join(""));
    return (check, series) => pattern.test(series.history(check));
  },
};

// Asked once, though it is asked again for each series of a check.
function ofCheck(asks) {
  let last, said;
  return (check) => {
    if (check !== last) [last, said] = [check, asks(check)];
    return said;
  };
}

const VALUES = {
  status: (node, index) => {
    const pattern = new RegExp(letters(node, index));
    return (check, series) => pattern.test(series.now(check));
  },
  evidence: oneOf((index) => index.evidence, (check, series) => series.result(check)?.evidence),
  backend: oneOf((index) => index.series.map((s) => s.backend), (check, series) => series.backend),
  torch: oneOf((index) => index.series.map((s) => s.line), (check, series) => series.line),
  surface: oneOf((index) => index.checks.map((c) => c.surface), (check) => check.surface),
  requirement: oneOf((index) => index.checks.flatMap((c) => c.requirements), (check) => check.requirements),
  level: oneOf((index) => index.checks.map((c) => c.level), (check) => check.level),
  tier: oneOf((index) => index.checks.map((c) => c.tier), (check) => check.tier),
  is: (node, index) => {
    known(node, IS);
    const { value } = node;
    return (check, series) => kinds(index, series, check).has(value);
  },
};

// Of a field whose words `words(index)` has; `read(check, series)` gives one word, several or none.
function oneOf(words, read) {
  return (node, index) => {
    const start = node.value.endsWith("*") ? node.value.slice(0, -1) : null;
    const fits = (word) => (start === null ? word.toLowerCase() === node.value : word.toLowerCase().startsWith(start));
    const all = new Set(words(index));
    const right = new Set([...all].filter(fits));
    if (!right.size) known(node, [...all]);
    return (check, series) => [read(check, series)].flat().some((word) => right.has(word));
  };
}

function known({ field, value, at }, words) {
  if (words.includes(value)) return;
  const some = words.length > 30 ? " in any run" : `, but ${listed([...words].sort())}`;
  throw new QueryError(`there is no ${field}:${value}${some}`, at);
}

// A class of a regular expression: the letters of the states that a word of seq() or status: means.
function letters({ value, at }, index) {
  const { outcomes, states } = index;
  if (value === "absent") return "-";
  if (value !== "bad" && !(value in outcomes)) {
    known({ field: "status", value, at }, [...Object.keys(outcomes), "bad", "absent"]);
  }
  const fits = (outcome) => outcome === value || (value === "bad" && outcomes[outcome].bad);
  // A class of nothing matches nothing: no check has that outcome.
  return `[${states.filter(({ outcome }) => fits(outcome)).map(({ letter }) => letter).join("")}]`;
}

// What the newest run of the series says otherwise than the one before it.
function kinds(index, series, check) {
  if (series.runs < 2) return new Set();
  const before = series.result(check, series.runs - 2);
  const after = series.result(check);
  const changes = changesOf(index.moves, before, after).map(({ list }) => list);
  const words = changes.map((list) => ({ regressions: "regression", improvements: "improvement" })[list]);
  if (!before && after) words.push("new");
  if (before && !after) words.push("gone");
  if (changes.length) words.push("changed");
  return new Set(words);
}

// Which checks, in the order of their ids, with the series that say yes.
export function search(text, index) {
  const asks = predicate(parse(text), index);
  const found = [];
  for (const check of index.checks) {
    const series = check.series.filter((one) => asks(check, one));
    if (series.length) found.push({ check, series });
  }
  return found;
}
