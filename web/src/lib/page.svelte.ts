// The state of the page. All answers come from the service.

import * as api from "./api";
import type { Answer, CheckAnswer, Label, Question, Rule, RuleEdit } from "./api";
import { Latest } from "./latest";
import { beliefsOf, fitting, startOf, type Entry, type Situation } from "./situation";
import { decode, encode, type Shared } from "./url";

/** Milliseconds without a key before the text is checked. */
const CHECK_DELAY = 200;
/** Milliseconds without a change before the address is updated. */
const ADDRESS_DELAY = 250;

/** The model that a first visit shows, if it is served. */
const EXAMPLE = "warehouse";

export class Page {
  models = $state.raw<api.ModelSummary[]>([]);
  name = $state("");
  /** The text as it is served, as it is edited, and the last one that is a model. */
  served = $state("");
  text = $state("");
  valid = $state("");
  labels = $state.raw<Label[]>([]);
  rules = $state.raw<Rule[]>([]);
  checked = $state.raw<CheckAnswer | null>(null);
  situation = $state.raw<Situation>({});
  edits = $state.raw<Record<string, RuleEdit>>({});
  selected = $state("");
  answer = $state.raw<Answer | null>(null);
  /** The answer without changed rules, if there are any. */
  baseline = $state.raw<Answer | null>(null);
  error = $state("");

  #asking = new Latest();
  #checking = new Latest();
  #checkTimer = 0;
  #addressTimer = 0;
  #address = "";

  isEdited = $derived(this.text !== this.served);
  hasEdits = $derived(Object.keys(this.edits).length > 0);

  /** Opens the model and the situation of the address, or the first model. */
  async start(): Promise<void> {
    try {
      this.models = (await api.models()).models;
      const shared = await decode(location.hash.slice(1));
      const example = this.models.find((it) => it.name === EXAMPLE);
      const first = (example ?? this.models[0])?.name ?? "";
      const isServed = this.models.some((it) => it.name === shared?.model);
      await this.open(shared && isServed ? shared.model : first, shared ?? undefined);
    } catch (failure) {
      this.#failed(failure);
    }
  }

  /** Restores the state of the address, if it was not this page that changed it. */
  async follow(): Promise<void> {
    if (location.hash.slice(1) !== this.#address) await this.start();
  }

  /** Opens another model. */
  async choose(name: string): Promise<void> {
    try {
      await this.open(name);
    } catch (failure) {
      this.#failed(failure);
    }
  }

  async open(name: string, shared?: Shared): Promise<void> {
    const details = await api.model(name);
    this.name = name;
    this.served = details.text;
    this.text = this.valid = details.text;
    this.labels = details.labels;
    this.rules = details.rules;
    if (shared?.text !== undefined && shared.text !== details.text) {
      this.text = shared.text;
      const checked = await api.check(shared.text);
      if (checked.valid) this.#take(shared.text, checked);
    }
    this.situation = fitting(shared?.situation ?? startOf(this.labels), this.labels);
    this.edits = shared?.rules ?? {};
    const known = (label: string | undefined) => this.labels.some((it) => it.name === label);
    this.selected = known(shared?.label) ? (shared?.label ?? "") : (this.labels[0]?.name ?? "");
    this.#check();
    this.ask();
  }

  /** The question for the service: the model, the situation and the changed rules. */
  question(withEdits = true): Question {
    const source = this.valid === this.served ? { model: this.name } : { text: this.valid };
    const question: Question = { ...source, beliefs: beliefsOf(this.situation) };
    if (withEdits && this.hasEdits) question.rules = this.edits;
    return question;
  }

  ask(): void {
    this.#asking.run(async () => {
      try {
        const baseline = this.hasEdits ? api.whatif(this.question(false)) : null;
        this.answer = await api.whatif(this.question());
        this.baseline = await baseline;
        this.error = "";
      } catch (failure) {
        this.#failed(failure);
      }
    });
    this.#remember();
  }

  set(label: string, entry: Entry | null): void {
    const { [label]: _, ...others } = this.situation;
    this.situation = entry ? { ...others, [label]: entry } : others;
    this.ask();
  }

  replace(situation: Situation): void {
    this.situation = fitting(situation, this.labels);
    this.ask();
  }

  edit(rule: number, edit: RuleEdit | null): void {
    const { [rule]: _, ...others } = this.edits;
    this.edits = edit === null ? others : { ...others, [rule]: edit };
    this.ask();
  }

  clearEdits(): void {
    this.edits = {};
    this.ask();
  }

  select(label: string): void {
    this.selected = label;
    this.#remember();
  }

  write(text: string): void {
    if (text === this.text) return;
    this.text = text;
    clearTimeout(this.#checkTimer);
    this.#checkTimer = window.setTimeout(() => this.#check(), CHECK_DELAY);
  }

  #check(): void {
    this.#checking.run(async () => {
      const text = this.text;
      try {
        const checked = await api.check(text);
        this.checked = checked;
        if (checked.valid && text !== this.valid) {
          this.#take(text, checked);
          this.edits = {}; // rules may have other numbers now
          this.ask();
        }
        this.#remember();
      } catch (failure) {
        this.#failed(failure);
      }
    });
  }

  #take(text: string, checked: CheckAnswer): void {
    this.valid = text;
    this.labels = checked.labels;
    this.rules = checked.rules;
    this.situation = fitting(this.situation, this.labels);
    if (!this.labels.some((it) => it.name === this.selected)) this.selected = this.labels[0]?.name ?? "";
  }

  #failed(failure: unknown): void {
    this.error = failure instanceof Error ? failure.message : String(failure);
  }

  /** The state that a link carries. */
  shared(): Shared {
    const state: Shared = { model: this.name, situation: this.situation, label: this.selected };
    if (this.isEdited) state.text = this.text;
    if (this.hasEdits) state.rules = this.edits;
    return state;
  }

  /** Writes the state to the address, and returns the link. */
  async link(): Promise<string> {
    this.#address = await encode(this.shared());
    history.replaceState(null, "", `#${this.#address}`);
    return location.href;
  }

  #remember(): void {
    clearTimeout(this.#addressTimer);
    this.#addressTimer = window.setTimeout(() => void this.link(), ADDRESS_DELAY);
  }
}
