// A situation: what is known about each label. Labels that are absent are missing.

import type { Beliefs, Label } from "./api";

export type Entry = { belief: number[] } | { observed: string };
export type Situation = Record<string, Entry>;

/** The paper's input, which a first visit shows. */
const EXAMPLE: Record<string, [string, number][]> = {
  activity: [["walking", 0.1], ["normal", 0.4], ["overhead", 0.5]],
  feet: [["gait", 0.05], ["standing", 0.95]],
  hands: [["high", 0.5], ["centered", 0.3], ["low", 0.2]],
};

/** The situation that a model starts with: the paper's for its example, and nothing for others. */
export function startOf(labels: Label[]): Situation {
  const situation: Situation = {};
  for (const label of labels) {
    const given = EXAMPLE[label.name];
    if (!given || given.some(([name], i) => label.categories[i] !== name)) return {};
    if (given.length !== label.categories.length) return {};
    situation[label.name] = { belief: given.map(([, value]) => value) };
  }
  return situation;
}

/** The part of a situation that a model understands, after its labels have been edited. */
export function fitting(situation: Situation, labels: Label[]): Situation {
  const kept: Situation = {};
  for (const label of labels) {
    const entry = situation[label.name];
    if (!entry) continue;
    const fits =
      "belief" in entry
        ? label.classifier !== null && entry.belief.length === label.categories.length
        : label.categories.includes(entry.observed);
    if (fits) kept[label.name] = entry;
  }
  return kept;
}

/** The beliefs of a request. */
export function beliefsOf(situation: Situation): Beliefs {
  const beliefs: Beliefs = {};
  for (const [label, entry] of Object.entries(situation)) {
    beliefs[label] = "belief" in entry ? entry.belief : entry.observed;
  }
  return beliefs;
}

/** The belief that a card shows: the classifier's, certainty if observed, or the prior if missing. */
export function shown(label: Label, entry: Entry | undefined): number[] {
  if (!entry) return label.prior;
  if ("belief" in entry) return entry.belief;
  return label.categories.map((category) => (category === entry.observed ? 1 : 0));
}

/** The belief with one category set to `value`. The others keep their proportions, and all sum to 1. */
export function moved(belief: number[], index: number, value: number): number[] {
  const others = belief.reduce((sum, it, i) => (i === index ? sum : sum + it), 0);
  const rest = 1 - value;
  const even = rest / Math.max(1, belief.length - 1);
  const result = belief.map((it, i) => {
    if (i === index) return value;
    return others > 1e-9 ? (it / others) * rest : even;
  });
  return result.map(rounded);
}

/** Rounded to 12 digits, so that a belief of 0.3 is not 0.30000000000000004 in a link. */
function rounded(value: number): number {
  return Math.round(value * 1e12) / 1e12;
}

/** A probability for people: three digits, and never 0 or 1 unless it is. */
export function percent(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (value > 0 && value < 0.0005) return "<0.1%";
  if (value < 1 && value > 0.9995) return ">99.9%";
  return `${(value * 100).toFixed(1)}%`;
}

/** A change of a probability, in percentage points. */
export function points(change: number): string {
  return `${(change * 100).toFixed(1)} points`;
}
