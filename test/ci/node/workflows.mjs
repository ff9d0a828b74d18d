// SPDX-License-Identifier: BSD-3-Clause
// GitHub's own parser and evaluator of workflows, as a server: on each line of stdin one question,
// on stdout one answer to each, all JSON. test/support/workflow_runner/expressions.py asks.
import { createHash } from "node:crypto";
import { globSync, readFileSync, statSync } from "node:fs";
import { registerHooks } from "node:module";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Evaluator, Lexer, Parser, data } from "@actions/expressions";
import { IndexAccess, Star } from "@actions/expressions/ast";
import { falsy } from "@actions/expressions/result";
import { parse as parseYaml } from "yaml";

// The parser imports its schemas in the way of bundlers: as JSON without saying so.
registerHooks({
  load(url, context, next) {
    if (!url.endsWith(".json")) return next(url, context);
    const source = `export default ${readFileSync(fileURLToPath(url), "utf8")}`;
    return { format: "module", source, shortCircuit: true };
  },
});
const PARSER = "@actions/workflow-parser";
const { NoOperationTraceWriter, convertWorkflowTemplate, parseWorkflow } = await import(PARSER);
const { convertActionTemplate, parseAction } = await import(`${PARSER}/actions/index`);
const { ensureStatusFunction } = await import(`${PARSER}/model/converter/if-condition`);

const STATUS = ["success", "failure", "cancelled", "always"];

// ---- parsing -------------------------------------------------------------------------------

async function workflow({ path, files }) {
  const file = { name: path, content: files[path] };
  const { context, value } = parseWorkflow(file, new NoOperationTraceWriter());
  const called = {
    getFileContent: async (reference) => {
      const { owner, repository, path, version } = reference;
      const content = files[owner ? `${owner}/${repository}/${path}@${version}` : path];
      if (content === undefined) throw new Error(`no ${path}`);
      return { name: reference.path, content };
    },
  };
  if (value !== undefined) {
    await convertWorkflowTemplate(context, value, called, {
      fetchReusableWorkflowDepth: 1,
      errorPolicy: 1,
    });
  }
  return { errors: complaints(context), data: parseYaml(file.content) };
}

function action({ path, files }) {
  const file = { name: path, content: files[path] };
  const { context, value } = parseAction(file, new NoOperationTraceWriter());
  if (value !== undefined) convertActionTemplate(context, value);
  return { errors: complaints(context), data: parseYaml(file.content) };
}

const complaints = (context) => context.errors.getErrors().map((error) => error.message);

// ---- evaluating ----------------------------------------------------------------------------

// An evaluator that says what was asked for and is not there: GitHub takes it for empty.
class Strict extends Evaluator {
  misses = [];

  visitIndexAccess(node) {
    const result = super.visitIndexAccess(node);
    if (!(node.index instanceof Star) && result instanceof data.Null) {
      const object = this.eval(node.expr);
      const key = this.eval(node.index).coerceString();
      if (object instanceof data.Dictionary && object.get(key) === undefined) {
        this.misses.push([...this.path(node.expr), key]);
      }
    }
    return result;
  }

  path(node) {
    if (!(node instanceof IndexAccess)) return [node.name?.lexeme ?? "(...)"];
    const key = node.index instanceof Star ? "*" : this.eval(node.index).coerceString();
    return [...this.path(node.expr), key];
  }
}

function run(expression, { contexts, status, workspace }, misses) {
  const functions = new Map();
  const known = [];
  const add = (name, minArgs, maxArgs, call) => {
    functions.set(name.toLowerCase(), { name, minArgs, maxArgs, call });
    known.push({ name, minArgs, maxArgs });
  };
  for (const name of STATUS) add(name, 0, 0, () => new data.BooleanData(status[name]));
  add("hashFiles", 1, 255, (...globs) => new data.StringData(hashFiles(globs, workspace, misses)));
  const { tokens } = new Lexer(expression).lex();
  const tree = new Parser(tokens, Object.keys(contexts), known).parse();
  const evaluator = new Strict(tree, JSON.parse(JSON.stringify(contexts), data.reviver), functions);
  const result = evaluator.evaluate();
  misses.push(...evaluator.misses);
  return result;
}

function hashFiles(globs, workspace, misses) {
  const total = createHash("sha256");
  const files = globs
    .map((glob) => glob.coerceString())
    .flatMap((glob) => {
      const found = globSync(glob, { cwd: workspace }).map((name) => `${workspace}/${name}`);
      if (found.length === 0) misses.push(["hashFiles", glob]);
      return found.filter((name) => statSync(name).isFile());
    });
  for (const name of [...new Set(files)].sort()) {
    total.update(createHash("sha256").update(readFileSync(name)).digest());
  }
  return files.length ? total.digest("hex") : "";
}

// A text in pieces: expressions (odd places) between plain text (even places). `}}` inside of
// quotes ends nothing.
function pieces(text) {
  const result = [""];
  for (let at = 0; at < text.length; ) {
    if (!text.startsWith("${{", at)) {
      result[result.length - 1] += text[at++];
      continue;
    }
    let end = at + 3;
    for (let quoted = false; quoted || !text.startsWith("}}", end); end++) {
      if (end >= text.length) throw new Error(`an expression without an end: ${text.slice(at)}`);
      if (text[end] === "'") quoted = !quoted;
    }
    result.push(text.slice(at + 3, end), "");
    at = end + 2;
  }
  return result;
}

function expand(value, question, misses) {
  if (Array.isArray(value)) return value.map((item) => expand(item, question, misses));
  if (value !== null && typeof value === "object") {
    const pairs = Object.entries(value);
    return Object.fromEntries(pairs.map(([key, item]) => [key, expand(item, question, misses)]));
  }
  if (typeof value !== "string" || !value.includes("${{")) return value;
  const parts = pieces(value);
  const results = parts.map((part, i) => (i % 2 ? run(part, question, misses) : part));
  if (parts.length === 3 && !parts[0] && !parts[2]) return plain(results[1]);
  return results.map((result, i) => (i % 2 ? result.coerceString() : result)).join("");
}

const plain = (result) => JSON.parse(JSON.stringify(result, data.replacer));

function evaluate(question) {
  const misses = [];
  return { value: expand(question.value, question, misses), misses };
}

function condition(question) {
  const misses = [];
  const parts = pieces(question.text.trim());
  const whole = parts.length === 3 && !parts[0] && !parts[2];
  if (parts.length > 1 && !whole) {
    throw new Error(`text around an expression makes a condition that always holds: ${question.text}`);
  }
  const names = [...Object.keys(question.contexts), ...STATUS.map((name) => `${name}(0,0)`)];
  const asked = (whole ? parts[1] : parts[0]).trim() || "success()";
  const text = ensureStatusFunction(asked, { allowedContext: [...names, "hashFiles(1,255)"] });
  return { value: !falsy(run(text, question, misses)), misses };
}

const ANSWERS = { workflow, action, evaluate, condition };

for await (const line of createInterface({ input: process.stdin })) {
  const question = JSON.parse(line);
  let answer;
  try {
    answer = await ANSWERS[question.op](question);
  } catch (error) {
    answer = { error: error.message };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
