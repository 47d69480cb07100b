// The TextMate grammar of `editors/vscode`, as VS Code runs it, and the words of the page's own editor.

import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { describe, expect, it } from "vitest";
import * as oniguruma from "vscode-oniguruma";
import { INITIAL, Registry, parseRawGrammar, type IGrammar } from "vscode-textmate";
import { STATEMENTS, WORDS } from "./language";

const ROOT = "..";
const GRAMMAR = `${ROOT}/editors/vscode/syntaxes/prsl.tmLanguage.json`;

async function grammar(): Promise<IGrammar> {
  const wasm = readFileSync(createRequire(import.meta.url).resolve("vscode-oniguruma/release/onig.wasm"));
  await oniguruma.loadWASM(wasm);
  const registry = new Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (sources) => new oniguruma.OnigScanner(sources),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: () => Promise.resolve(parseRawGrammar(readFileSync(GRAMMAR, "utf8"), GRAMMAR)),
  });
  const loaded = await registry.loadGrammar("source.prsl");
  if (!loaded) throw new Error("there is no grammar");
  return loaded;
}
const loaded = grammar();

interface Colored {
  text: string;
  scope: string;
}

/** The parts of a text with their innermost scopes, without white space. */
async function colored(text: string): Promise<Colored[]> {
  const rules = await loaded;
  let state = INITIAL;
  return text.split(/\r?\n/).flatMap((line) => {
    const { tokens, ruleStack } = rules.tokenizeLine(line, state);
    state = ruleStack;
    const parts = tokens.map((it) => ({ text: line.slice(it.startIndex, it.endIndex), scope: it.scopes.at(-1) ?? "" }));
    return parts.filter((it) => it.text.trim());
  });
}

/** What the grammar does not know. */
const unknown = (parts: Colored[]) => parts.filter((it) => it.scope === "source.prsl" || it.scope.startsWith("invalid"));

/** All models of the project: examples, cases, and the description of the language. */
function models(): [string, string][] {
  const read = (path: string) => readFileSync(`${ROOT}/${path}`, "utf8");
  const files = (folder: string, ending: string) =>
    readdirSync(`${ROOT}/${folder}`).filter((it) => it.endsWith(ending)).map((it) => `${folder}/${it}`);
  const cases = files("tests/cases", ".case").map((path): [string, string] => {
    const model = /^\[model\]\n([^]*?)(?=^\[\w+\]$)/m.exec(read(path))?.[1];
    return [path, model ?? ""];
  });
  const language = /^```text\n([^]*?)^```/m.exec(read("crates/prsl/docs/language.md"))?.[1] ?? "";
  return [...files("examples", ".prsl").map((path): [string, string] => [path, read(path)]), ...cases, ["language.md", language]];
}

describe("grammar", () => {
  it.each(models())("colors all of %s", async (_, text) => {
    expect(text).toContain("label ");
    expect(unknown(await colored(text))).toEqual([]);
  });
  it("marks what is no token", async () => {
    for (const wrong of ["rule 0.9: a @ b", "rule 2x: a", "rule 7%: a", 'label "a', 'label "\\q": x, y', "rule 0.9: a / b"]) {
      expect(unknown(await colored(wrong)), wrong).toHaveLength(1);
    }
  });
  it("tells words by their places", async () => {
    const scopes = async (text: string) => (await colored(text)).map((it) => `${it.text} ${it.scope.split(".").slice(0, 2).join(".")}`);
    expect(await scopes("label rule: platt, mpe")).toEqual([
      "label keyword.control", "rule entity.name", ": punctuation.separator", "platt variable.other",
      ", punctuation.separator", "mpe variable.other",
    ]);
    expect(await scopes("calibrate platt platt 1.2 -0.3")).toEqual([
      "calibrate keyword.control", "platt variable.other", "platt support.function", "1.2 constant.numeric",
      "-0.3 constant.numeric",
    ]);
    expect(await scopes("expect a=x => mpe größe # why")).toEqual([
      "expect keyword.control", "a variable.other", "= keyword.operator", "x variable.other", "=> keyword.operator",
      "mpe constant.language", "größe variable.other", "# why comment.line",
    ]);
    expect(await scopes("fixed rule 1: fixed_ -> label2")).toEqual([
      "fixed storage.modifier", "rule keyword.control", "1 constant.numeric", ": punctuation.separator",
      "fixed_ variable.other", "-> keyword.operator", "label2 variable.other",
    ]);
    expect(await scopes("typical 2: none")).toContain("none constant.language");
    expect(await scopes("typical 2: none, b")).toContain("none variable.other");
  });
});

describe("the page's editor", () => {
  // A test of the command line compares the grammar with the lexer's list.
  const { repository } = JSON.parse(readFileSync(GRAMMAR, "utf8")) as { repository: Record<string, { match: string }> };
  const words = (name: string, group: RegExp) => group.exec(repository[name]?.match ?? "")?.[1]?.split("|") ?? [];
  it("knows the words of the grammar", () => {
    expect([...STATEMENTS].sort()).toEqual(words("statement", /\(([\w|]+)\)\\b$/).sort());
    const reserved = ["logic", "count", "constant", "setting"].flatMap((name) => words(name, /\(([\w|]+)\)/));
    const calibrators = words("calibrate", /\(([\w|]+)\)\\b$/);
    expect([...WORDS].sort()).toEqual([...reserved, ...calibrators, "mpe", "none"].sort());
  });
});
