// A large rule base: ROAD-R has 41 labels and 243 rules. Times are printed; what is asserted is how much the page builds.

import { expect, test, type Page } from "@playwright/test";
import { open, view } from "./page";

/** Frames longer than this are noticed. */
const LONG = 50;

/** Scrolls an element to its end and back, a step per frame. Returns the milliseconds of all frames. */
const scrolled = (page: Page, selector: string) =>
  page.evaluate(async (selector) => {
    const element = selector === "page" ? document.documentElement : document.querySelector(selector);
    if (!element) throw new Error(`there is no ${selector}`);
    const steps = 60;
    const end = element.scrollHeight - element.clientHeight;
    const frame = () => new Promise<number>((done) => requestAnimationFrame(done));
    const times: number[] = [];
    let last = await frame();
    for (let step = 1; step <= 2 * steps; step++) {
      element.scrollTop = (end * (step <= steps ? step : 2 * steps - step)) / steps;
      const now = await frame();
      times.push(now - last);
      last = now;
    }
    if (end <= 0) throw new Error(`${selector} cannot be scrolled`);
    return times;
  }, selector);

function report(what: string, times: number[]): void {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share: number) => (sorted[Math.floor(share * (sorted.length - 1))] ?? 0).toFixed(1);
  const long = times.filter((it) => it > LONG).length;
  console.log(`ROAD-R, ${what}: ${times.length} frames, median ${at(0.5)} ms, longest ${at(1)} ms, ${long} above ${LONG} ms`);
}

async function openRoad(page: Page): Promise<void> {
  await open(page);
  const models = page.getByLabel("Model");
  test.skip((await models.count()) === 0, "the rules of ROAD-R are not available");
  await models.selectOption("road-r");
  await expect(page.getByText("41 labels, 243 rules")).toBeVisible();
  await expect(page.getByTestId("best-probability")).toContainText("%");
}

const count = (page: Page, selector: string) => page.locator(selector).count();

test("scrolling builds only what is in sight", async ({ page }) => {
  test.setTimeout(60_000);
  await openRoad(page);
  await view(page, "Why");
  await expect(page.getByText("Show more of 243 rules")).toBeVisible({ timeout: 15_000 }); // the engine for explanations is compiled now
  expect(await count(page, "li.rule")).toBe(12);
  report("scrolling cards and reasons", await scrolled(page, "page"));
  // Cards out of sight are not laid out and painted.
  const rendered = await page.evaluate(() => {
    const rows = [...document.querySelectorAll("article.card .row")];
    return [rows.length, rows.filter((it) => it.checkVisibility({ contentVisibilityAuto: true })).length];
  });
  expect(rendered[0]).toBe(41);
  expect(rendered[1]).toBeLessThan(41);
  await page.getByRole("button", { name: "Show more of 243 rules" }).click();
  expect(await count(page, "li.rule")).toBe(36);
  report("scrolling 36 reasons", await scrolled(page, "page"));
  await view(page, "Rules");
  await expect(page.locator(".cm-line").first()).toBeVisible();
  report("scrolling the editor", await scrolled(page, ".cm-scroller"));
  const lines = await count(page, ".cm-line");
  expect(lines).toBeLessThan(100); // of 286
  await view(page, "Graph");
  await expect(page.locator(".graph .rule").first()).toBeVisible();
  expect(await count(page, ".graph .rule")).toBeLessThanOrEqual(10);
  const nodes = await count(page, "*");
  console.log(`ROAD-R, ${lines} lines of the editor, ${nodes} elements of the page`);
  expect(nodes).toBeLessThan(2500);
});

test("search finds labels and rules, and nothing else", async ({ page }) => {
  await openRoad(page);
  await view(page, "Why");
  const labels = await page.locator("article.card").evaluateAll((cards) => cards.map((it) => it.ariaLabel ?? ""));
  expect(labels).toHaveLength(41);
  const search = page.getByLabel("Find a label");
  const times: number[] = [];
  for (const typed of ["C", "Ca", "Car", "Car ", "", "Ped", "no label is called so", ""]) {
    const wanted = typed.trim().toLowerCase();
    // All labels are yes/no labels, so that `no` alone would find all of them.
    const expected = labels.filter((it) => [it, "yes", "no"].some((name) => name.toLowerCase().includes(wanted)));
    const start = Date.now();
    await search.fill(typed);
    await expect(page.locator("article.card")).toHaveCount(expected.length);
    times.push(Date.now() - start);
    const found = await page.locator("article.card").evaluateAll((cards) => cards.map((it) => it.ariaLabel ?? ""));
    expect(found).toEqual(expected);
  }
  await expect(page.getByText("Show more of 243 rules")).toBeVisible();
  const rules = page.getByLabel("Find a rule");
  const start = Date.now();
  await rules.fill("Ped");
  await expect(page.getByText("Show more of 243 rules")).toHaveCount(0);
  times.push(Date.now() - start);
  const sentences = await page.locator("li.rule .text p").allTextContents();
  expect(sentences.length).toBeGreaterThan(0);
  for (const sentence of sentences) expect(sentence).toMatch(/ped/i);
  console.log(`ROAD-R, milliseconds from a typed word to its cards or rules: ${times.join(", ")}`);
});
