// The rule language in the editor: colors, and completion of names.

import type { CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { HighlightStyle, StreamLanguage } from "@codemirror/language";
import { tags } from "@lezer/highlight";
import type { Label } from "./api";

export const STATEMENTS = ["label", "calibrate", "rule", "noisy_or", "fixed", "typical", "expect"];
export const WORDS = [
  "from", "latent", "prior", "in", "of", "at_least", "at_most", "exactly", "not", "and", "or", "xor", "true", "false",
  "mpe", "none", "platt", "temperature", "isotonic", "dirichlet", "confusion",
];

export const language = StreamLanguage.define<{ names: Set<string> }>({
  name: "prsl",
  startState: () => ({ names: new Set() }),
  token(stream) {
    if (stream.eatSpace()) return null;
    if (stream.match(/^#.*/)) return "comment";
    if (stream.match(/^"(\\.|[^"\\])*"?/)) return "string";
    if (stream.match(/^[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?/)) return "number";
    if (stream.match(/^(<->|->|<-|=>|\+-|!=|[&|!~=<>¬∧∨⊕→←↔])/)) return "operator";
    const isFirst = stream.sol();
    const word = stream.match(/^[\p{L}_][\p{L}\p{N}_]*/u);
    if (word && typeof word !== "boolean") {
      if (isFirst && STATEMENTS.includes(word[0])) return "keyword";
      if (word[0] === "rule" || word[0] === "noisy_or") return "keyword";
      return WORDS.includes(word[0]) ? "modifier" : "variableName";
    }
    stream.next();
    return "punctuation";
  },
  tokenTable: { modifier: tags.modifier },
});

export const colors = HighlightStyle.define([
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
  { tag: tags.modifier, color: "var(--code-keyword)" },
  { tag: tags.number, color: "var(--code-number)" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: tags.operator, color: "var(--code-operator)" },
]);

/** Completes statements at the start of a line, and names and words elsewhere. */
export function completion(labels: () => Label[]) {
  return (context: CompletionContext): CompletionResult | null => {
    const word = context.matchBefore(/[\p{L}\p{N}_]+/u);
    if (!word && !context.explicit) return null;
    const from = word?.from ?? context.pos;
    const isFirst = context.state.doc.lineAt(from).from === from;
    if (isFirst) return { from, options: STATEMENTS.map((label) => ({ label, type: "keyword" })) };
    const names = labels().flatMap((label) => [
      { label: label.name, type: "class", detail: "label" },
      ...label.categories
        .filter((category) => category !== "yes" && category !== "no")
        .map((category) => ({ label: category, type: "enum", detail: label.name })),
    ]);
    return { from, options: [...names, ...WORDS.map((label) => ({ label, type: "keyword" }))] };
  };
}
