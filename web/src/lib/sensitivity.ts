// Rows that move one belief, and what the service answers to them.

import type { Beliefs, Label, RowAnswer } from "./api";
import { beliefsOf, moved, shown, type Situation } from "./situation";

/** Beliefs this close to certainty stand for the ends, where a row may be impossible. */
const END = 0.001;
/** Number of points of a curve. */
const POINTS = 21;

export interface Sweep {
  label: string;
  category: string;
  index: number;
}

/** Every belief that can move: one per category, and only the first of two. Latent labels have none. */
export function sweeps(labels: Label[]): Sweep[] {
  return labels
    .filter((label) => label.classifier !== null)
    .flatMap((label) => {
      const categories = label.categories.length === 2 ? label.categories.slice(0, 1) : label.categories;
      return categories.map((category, index) => ({ label: label.name, category, index }));
    });
}

/** The situation with one belief at each of these values. */
export function rowsAt(sweep: Sweep, values: number[], labels: Label[], situation: Situation): Beliefs[] {
  const label = labels.find((it) => it.name === sweep.label);
  if (!label) return [];
  const now = shown(label, situation[label.name]);
  const beliefs = beliefsOf(situation);
  return values.map((value) => ({ ...beliefs, [label.name]: moved(now, sweep.index, value) }));
}

export const ends = [END, 1 - END];
export const grid = Array.from({ length: POINTS }, (_, i) =>
  Math.min(1 - END, Math.max(END, i / (POINTS - 1))),
);

/** The probability of a category in each row; null where the row is impossible. */
export function probabilities(rows: RowAnswer[], label: string, category: string): (number | null)[] {
  return rows.map((row) => row.marginals?.[label]?.[category] ?? null);
}

export interface Range {
  sweep: Sweep;
  low: number;
  high: number;
  /** The probability if the belief is almost 0, and almost 1. A curve between them never turns. */
  from: number;
  to: number;
}

/** The range of each sweep, from two rows each, the widest first. */
export function ranges(all: Sweep[], rows: RowAnswer[], label: string, category: string): Range[] {
  const values = probabilities(rows, label, category);
  const found = all.flatMap((sweep, i) => {
    const [from, to] = [values[2 * i], values[2 * i + 1]];
    if (typeof from !== "number" || typeof to !== "number") return [];
    return [{ sweep, from, to, low: Math.min(from, to), high: Math.max(from, to) }];
  });
  return found.sort((a, b) => b.high - b.low - (a.high - a.low));
}
