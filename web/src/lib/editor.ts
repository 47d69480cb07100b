// The editor: CodeMirror with squiggles for findings, and marks beside `expect` lines.

import { autocompletion, closeBrackets, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, RangeSet, StateEffect, StateField } from "@codemirror/state";
import { EditorView, GutterMarker, drawSelection, gutter, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import type { CheckAnswer, Expectation, Label } from "./api";
import { colors, completion, language } from "./language";
import { positions } from "./offsets";

class Mark extends GutterMarker {
  constructor(readonly expectation: Expectation) {
    super();
  }
  override eq(other: Mark): boolean {
    return other.expectation.outcome === this.expectation.outcome;
  }
  override toDOM(): Node {
    const { outcome, message } = this.expectation;
    const mark = document.createElement("span");
    mark.className = `mark ${outcome}`;
    mark.textContent = outcome === "passed" ? "✓" : outcome === "failed" ? "✗" : "?";
    mark.title = message ?? "this expectation passes";
    return mark;
  }
}

const setMarks = StateEffect.define<RangeSet<Mark>>();

const marks = StateField.define<RangeSet<Mark>>({
  create: () => RangeSet.empty,
  update(value, transaction) {
    const set = transaction.effects.find((effect) => effect.is(setMarks));
    return set ? (set.value as RangeSet<Mark>) : value.map(transaction.changes);
  },
});

const theme = EditorView.theme({
  "&": { backgroundColor: "var(--surface)", color: "var(--text)", fontSize: "0.875rem", height: "100%" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--muted)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--hover)" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-selectionBackground, &.cm-focused .cm-selectionBackground": { backgroundColor: "var(--selection) !important" },
  ".cm-tooltip": { backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--line)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-panels": { backgroundColor: "var(--background)", color: "var(--text)" },
  ".cm-marks": { width: "1.2em" },
});

export interface EditorSettings {
  parent: Element;
  text: string;
  nonce: string;
  labels: () => Label[];
  changed: (text: string) => void;
}

export function createEditor({ parent, text, nonce, labels, changed }: EditorSettings): EditorView {
  const extensions = [
    EditorView.cspNonce.of(nonce),
    marks,
    gutter({ class: "cm-marks", markers: (view) => view.state.field(marks) }),
    lineNumbers(),
    history(),
    drawSelection(),
    bracketMatching(),
    closeBrackets(),
    highlightActiveLine(),
    highlightSelectionMatches(),
    language,
    syntaxHighlighting(colors),
    autocompletion({ override: [completion(labels)] }),
    keymap.of([...completionKeymap, ...lintKeymap, ...searchKeymap, ...historyKeymap, ...defaultKeymap]),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": "Rules of the model" }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) changed(update.state.doc.toString());
    }),
    theme,
  ];
  const view = new EditorView({ parent, state: EditorState.create({ doc: text, extensions }) });
  view.scrollDOM.tabIndex = 0; // a long text can be scrolled with the keyboard
  return view;
}

/** Shows the findings and outcomes of a check. */
export function showChecks(view: EditorView, checked: CheckAnswer): void {
  const text = view.state.doc.toString();
  const at = positions(text);
  const diagnostics = checked.findings.map((finding): Diagnostic => {
    const from = Math.min(at(finding.span.start), text.length);
    const to = Math.max(from, Math.min(at(finding.span.end), text.length));
    const message = finding.help ? `${finding.message}\n${finding.help}` : finding.message;
    const severity = finding.severity === "note" ? "info" : finding.severity;
    return { from, to: to > from ? to : Math.min(from + 1, text.length), severity, message };
  });
  const ranges = checked.expectations.map((expectation) => {
    const line = view.state.doc.lineAt(Math.min(at(expectation.span.start), text.length));
    return new Mark(expectation).range(line.from);
  });
  view.dispatch(setDiagnostics(view.state, diagnostics));
  view.dispatch({ effects: setMarks.of(RangeSet.of(ranges, true)) });
}

/** Moves the cursor to a byte position of the checked text. */
export function goTo(view: EditorView, byte: number): void {
  const position = Math.min(positions(view.state.doc.toString())(byte), view.state.doc.length);
  view.dispatch({ selection: { anchor: position }, scrollIntoView: true });
  view.focus();
}
