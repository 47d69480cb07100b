// The state in the address: model, situation, edited text and changed rules, compressed, in base64 for addresses.

import type { RuleEdit } from "./api";
import type { Entry, Situation } from "./situation";

export interface Shared {
  model: string;
  situation: Situation;
  /** The edited text; absent if the model is as it is served. */
  text?: string;
  rules?: Record<string, RuleEdit>;
  label?: string;
}

async function through(bytes: Uint8Array, stream: TransformStream): Promise<Uint8Array> {
  const source = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream();
  return new Uint8Array(await new Response(source.pipeThrough(stream)).arrayBuffer());
}

export async function encode(state: Shared): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  const packed = await through(bytes, new CompressionStream("deflate-raw"));
  let binary = "";
  for (const byte of packed) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** The state of an address, or null if it has none, or one that is damaged. */
export async function decode(text: string): Promise<Shared | null> {
  if (!text) return null;
  try {
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(binary, (it) => it.charCodeAt(0));
    const bytes = await through(packed, new DecompressionStream("deflate-raw"));
    return checked(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isEntry(value: unknown): value is Entry {
  if (!isObject(value)) return false;
  if (typeof value.observed === "string") return true;
  return Array.isArray(value.belief) && value.belief.every((it) => typeof it === "number");
}

function checked(value: unknown): Shared | null {
  if (!isObject(value) || typeof value.model !== "string" || !isObject(value.situation)) return null;
  const situation: Situation = {};
  for (const [label, entry] of Object.entries(value.situation)) {
    if (isEntry(entry)) situation[label] = entry;
  }
  const state: Shared = { model: value.model, situation };
  if (typeof value.text === "string") state.text = value.text;
  if (typeof value.label === "string") state.label = value.label;
  if (isObject(value.rules)) {
    const isEdit = (edit: unknown): edit is RuleEdit => edit === "off" || typeof edit === "number";
    const edits = Object.entries(value.rules).filter((it): it is [string, RuleEdit] => isEdit(it[1]));
    state.rules = Object.fromEntries(edits);
  }
  return state;
}
