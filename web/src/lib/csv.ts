// Tables of beliefs as in `prsl predict`: columns `label=category` have beliefs, columns `label` observed categories.

import type { Label } from "./api";
import type { Situation } from "./situation";

/** The cells of a CSV text. Quoted cells may contain commas, quotes and line breaks. */
export function cells(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let isQuoted = false;
  const source = text.replace(/^\ufeff/, "").replaceAll("\r\n", "\n");
  for (let i = 0; i < source.length; i++) {
    const character = source[i];
    if (isQuoted) {
      if (character !== '"') cell += character;
      else if (source[i + 1] === '"') cell += source[i++];
      else isQuoted = false;
    } else if (character === '"' && cell === "") isQuoted = true;
    else if (character === ",") {
      row.push(cell);
      cell = "";
    } else if (character === "\n") {
      rows.push([...row, cell]);
      [row, cell] = [[], ""];
    } else cell += character;
  }
  if (cell !== "" || row.length > 0) rows.push([...row, cell]);
  return rows.filter((it) => it.some((value) => value.trim() !== ""));
}

export interface Table {
  rows: Situation[];
  /** Columns that are not about a label of the model. */
  unused: string[];
}

/** The situation of each row. Throws an error that says which cell cannot be read. */
export function table(text: string, labels: Label[]): Table {
  const [header, ...body] = cells(text);
  if (!header) throw new Error("the file is empty; expected a line with the names of columns");
  const columns = new Map(header.map((name, i) => [name.trim().replace(/\s*=\s*/, "="), i]));
  const used = new Set<number>();
  const rows = body.map((row, i) => situationOf(row, i + 1, labels, columns, used));
  return { rows, unused: header.filter((_, i) => !used.has(i) && body.length > 0) };
}

function situationOf(
  row: string[], number: number, labels: Label[], columns: Map<string, number>, used: Set<number>,
): Situation {
  const situation: Situation = {};
  const cell = (name: string) => {
    const column = columns.get(name);
    if (column === undefined) return "";
    used.add(column);
    return row[column]?.trim() ?? "";
  };
  for (const label of labels) {
    const alone = cell(label.name);
    const given = label.categories.map((category) => cell(`${label.name}=${category}`));
    if (alone !== "" && label.categories.includes(alone)) situation[label.name] = { observed: alone };
    else if (alone !== "" && label.categories[0] === "yes") {
      const yes = probability(alone, number, label.name);
      situation[label.name] = { belief: [yes, 1 - yes] };
    } else if (alone !== "") {
      throw new Error(`row ${number}: \`${alone}\` is not a category of \`${label.name}\``);
    } else if (given.some((it) => it !== "")) {
      const values = given.map((it, i) =>
        it === "" ? null : probability(it, number, `${label.name}=${label.categories[i]}`),
      );
      situation[label.name] = { belief: completed(values, label.prior) };
    }
  }
  return situation;
}

function probability(text: string, row: number, column: string): number {
  const value = Number(text);
  if (value >= 0 && value <= 1) return value;
  throw new Error(`row ${row}, column \`${column}\`: \`${text}\` is not a number from 0 to 1`);
}

/** Gives empty cells what is left to 1, in proportion to the prior. */
function completed(values: (number | null)[], prior: number[]): number[] {
  const given = values.reduce<number>((sum, it) => sum + (it ?? 0), 0);
  const share = values.reduce<number>((sum, it, i) => (it === null ? sum + (prior[i] ?? 0) : sum), 0);
  const rest = Math.max(0, 1 - given);
  return values.map((it, i) => it ?? (share > 0 ? ((prior[i] ?? 0) / share) * rest : 0));
}
