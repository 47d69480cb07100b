// The service: requests and answers of /api/v1, as far as the page uses them.

export type BeliefValue = number[] | string | null;
export type Beliefs = Record<string, BeliefValue>;
export type RuleEdit = "off" | number;

export interface Label {
  index: number;
  name: string;
  categories: string[];
  prior: number[];
  has_prior: boolean;
  classifier: string | null;
  calibrator: string | null;
}

export interface Rule {
  number: number;
  name: string | null;
  text: string;
  sentence: string;
  probability: number;
  labels: string[];
}

export interface ModelSummary {
  name: string;
  n_labels: number;
  n_rules: number;
}

export interface ModelDetails {
  name: string;
  text: string;
  labels: Label[];
  rules: Rule[];
}

export interface Span {
  start: number;
  end: number;
}

export interface Finding {
  severity: "error" | "warning" | "note";
  code: string;
  span: Span;
  line: number;
  message: string;
  help?: string;
}

export interface Expectation {
  number: number;
  text: string;
  span: Span;
  line: number;
  outcome: "passed" | "failed" | "not_checked";
  message: string | null;
}

export interface CheckAnswer {
  valid: boolean;
  findings: Finding[];
  notes: Finding[];
  expectations: Expectation[];
  labels: Label[];
  rules: Rule[];
}

export type Marginals = Record<string, Record<string, number>>;

export interface Best {
  assignment: Record<string, string>;
  probability: number | null;
  proven: boolean;
}

export interface Change {
  category: string;
  without: number | null;
  with: number | null;
  change: number | null;
}

export interface RuleEffect {
  number: number;
  name: string | null;
  text: string;
  sentence: string;
  probability: number;
  agreement: number | null;
  conflict: boolean;
  possible_without: boolean;
  influences: { label: string; categories: Change[] }[];
}

export interface BeliefChange {
  category: string;
  before: number;
  needed: number;
}

export interface Counterfactual {
  label: string;
  distance: number;
  observed?: string;
  belief: BeliefChange | null;
  observations: { category: string }[];
  unobserved: object | null;
}

export interface Flip {
  target: string;
  already: boolean;
  changes: Counterfactual[];
  own: Counterfactual | null;
  unable: string[];
}

export interface Gains {
  entropy: number | null;
  gains: { label: string; gain: number }[];
}

export interface RowAnswer {
  status: string;
  log_evidence?: number | null;
  marginals?: Marginals | null;
  best?: Best[];
}

export interface Answer extends RowAnswer {
  engine: string;
  conflict: string | null;
  best_refused?: string;
  explanation?: { possible: boolean; approximate?: boolean; rules: RuleEffect[] };
  flip?: Flip;
  next?: Gains;
  rows?: RowAnswer[];
}

export interface Question {
  model?: string;
  text?: string;
  beliefs: Beliefs;
  rules?: Record<string, RuleEdit>;
  label?: string;
  explain?: boolean;
  flip?: string;
  next?: boolean;
  rows?: Beliefs[];
}

async function answered<T>(request: Promise<Response>): Promise<T> {
  let response: Response;
  try {
    response = await request;
  } catch {
    throw new Error("the service does not answer; is `prsl serve` still running?");
  }
  const body: unknown = await response.json().catch(() => null);
  if (response.ok) return body as T;
  const detail = (body as { detail?: string } | null)?.detail;
  throw new Error(detail ?? `the service answered with status ${response.status}`);
}

function post<T>(path: string, body: object): Promise<T> {
  const headers = { "content-type": "application/json" };
  return answered(fetch(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

export const models = () => answered<{ models: ModelSummary[] }>(fetch("api/v1/models"));
export const model = (name: string) =>
  answered<ModelDetails>(fetch(`api/v1/models/${encodeURIComponent(name)}`));
export const whatif = (question: Question) => post<Answer>("api/v1/whatif", question);
export const check = (text: string) => post<CheckAnswer>("api/v1/check", { text });
