// What all tests of the page share.

import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, type Page } from "@playwright/test";

const PRSL = process.env.PRSL ?? "../target/debug/prsl";

/** Opens the page, and makes every message of the browser about an error or a refused style a failure. */
export async function open(page: Page, address = "/"): Promise<string[]> {
  const messages: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") messages.push(message.text());
  });
  page.on("pageerror", (error) => messages.push(error.message));
  await page.addInitScript(() => localStorage.setItem("prsl-tour", "seen"));
  await page.goto(address);
  await expect(page.getByTestId("best-probability")).toContainText("%");
  return messages;
}

/** What `prsl predict` says about one row of the example. */
export function predicted(row: Record<string, number>): Record<string, number> {
  const file = join(mkdtempSync(join(tmpdir(), "prsl-")), "beliefs.csv");
  writeFileSync(file, `${Object.keys(row).join(",")}\n${Object.values(row).join(",")}\n`);
  const output = execFileSync(PRSL, ["predict", "../examples/warehouse.prsl", file], { encoding: "utf8" });
  const [header, values] = output.trim().split("\n").map((line) => line.split(","));
  return Object.fromEntries((header ?? []).map((name, i) => [name, Number(values?.[i])]));
}

/** A probability as the page shows it. */
export const percent = (value: number | undefined) => `${((value ?? Number.NaN) * 100).toFixed(1)}%`;

/** Sets a slider, as a person would. */
export async function slide(page: Page, name: string, value: number): Promise<void> {
  await page.getByRole("slider", { name }).fill(String(value));
}

/** Shows a view. */
export const view = (page: Page, name: string) => page.getByRole("tab", { name }).click();
