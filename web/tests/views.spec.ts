import { readFileSync } from "node:fs";
import { expect, test } from "@playwright/test";
import { open, percent, predicted, slide, view } from "./page";

const EXAMPLE = {
  "activity=walking": 0.1, "activity=normal": 0.4, "activity=overhead": 0.5,
  "feet=gait": 0.05, "feet=standing": 0.95, "hands=high": 0.5, "hands=centered": 0.3, "hands=low": 0.2,
};

/** Whether a question is that of the cards, and not one of the view beside them. */
const isSituation = (question: object) => !("rows" in question || "label" in question || "explain" in question);

test("a rule that is switched off changes the answer, and comes back", async ({ page }) => {
  await open(page);
  await view(page, "Why");
  await expect(page.getByText("raises overhead by 5.5 points")).toBeVisible();
  await page.getByRole("checkbox", { name: /gait_is_walking/ }).uncheck();
  await expect(page.getByTestId("after-activity-overhead")).toContainText("64.9%");
  await expect(page.getByText("switched off")).toBeVisible();
  await page.getByRole("button", { name: "Restore all rules" }).click();
  await expect(page.getByTestId("after-activity-overhead")).toContainText("70.3%");
});

test("a changed probability gives the answer of the edited text", async ({ page }) => {
  await open(page);
  await view(page, "Why");
  await page.getByLabel("Probability of reach").fill("0.5");
  await page.getByLabel("Probability of reach").press("Enter");
  await expect(page.getByTestId("after-activity-overhead")).toContainText("66.2%");
});

test("the view Why tells what would change the answer and what to ask", async ({ page }) => {
  await open(page);
  await view(page, "Why");
  await expect(page.getByTestId("flip")).toContainText("belief in activity normal above 61.9% (now 40.0%)");
  await expect(page.getByTestId("next").getByRole("listitem").first()).toContainText("hands tells 0.183 bits");
  await page.getByRole("button", { name: /hands low/ }).click();
  const chart = page.getByRole("img", { name: /if the belief in hands low is almost 0/ });
  await expect(chart).toBeVisible();
  await expect(chart.locator("polyline")).toHaveAttribute("points", /\d/);
});

test("a category is observed from the graph", async ({ page }) => {
  await open(page);
  await view(page, "Graph");
  await page.getByRole("button", { name: /Observe feet standing/ }).click();
  await expect(page.getByLabel("What is known about feet")).toHaveValue("=standing");
  await expect(page.getByTestId("after-feet-standing")).toContainText("100.0%");
  await page.getByRole("button", { name: /Observe feet standing/ }).click();
  await expect(page.getByLabel("What is known about feet")).toHaveValue("missing");
});

test("a table is dropped, and its rows are shown one by one", async ({ page }) => {
  await open(page);
  await view(page, "Cases");
  const second = { ...EXAMPLE, "feet=gait": 0.9, "feet=standing": 0.1 };
  const lines = [Object.keys(EXAMPLE), Object.values(EXAMPLE), Object.values(second)];
  const transfer = await page.evaluateHandle((text) => {
    const data = new DataTransfer();
    data.items.add(new File([text], "beliefs.csv", { type: "text/csv" }));
    return data;
  }, lines.map((it) => it.join(",")).join("\n"));
  await page.locator(".drop").dispatchEvent("drop", { dataTransfer: transfer });
  await expect(page.getByText("of 2 in beliefs.csv")).toBeVisible();
  await page.getByRole("button", { name: "Next" }).click();
  const expected = percent(predicted(second)["activity=walking"]);
  await expect(page.getByTestId("after-activity-walking")).toContainText(expected);
});

test("two situations are compared side by side", async ({ page }) => {
  await open(page);
  await view(page, "Cases");
  await page.getByLabel("Name of this situation").fill("paper");
  await page.getByRole("button", { name: "Save" }).click();
  await slide(page, "Belief in feet gait", 0.6);
  const after = predicted({ ...EXAMPLE, "feet=gait": 0.6, "feet=standing": 0.4 });
  const row = page.getByRole("row", { name: /^activity walking/ });
  await expect(row).toContainText("0.7%");
  await expect(row).toContainText(percent(after["activity=walking"]));
});

test("a large model answers its sliders, and its labels are found by name", async ({ page }) => {
  await open(page);
  const models = page.getByLabel("Model");
  test.skip((await models.count()) === 0, "the rules of ROAD-R are not available");
  await models.selectOption("road-r");
  await expect(page.getByText("41 labels, 243 rules")).toBeVisible();
  await view(page, "Rules");
  await page.getByLabel("Find a label").fill("Ped");
  await expect(page.getByRole("slider")).toHaveCount(1);
  const times: number[] = [];
  for (const value of [0.1, 0.9, 0.3, 0.7, 0.2, 0.8]) {
    const answered = page.waitForResponse((it) => it.url().endsWith("whatif") && isSituation(it.request().postDataJSON()));
    const start = Date.now();
    await slide(page, "Belief in Ped yes", value);
    await answered;
    times.push(Date.now() - start);
  }
  console.log(`ROAD-R, milliseconds from slider to answer: ${times.join(", ")}`);
  await expect(page.getByTestId("after-Ped-yes")).toContainText("%");
});

test("the edited model is downloaded", async ({ page }) => {
  await open(page);
  await view(page, "Rules");
  await page.getByText("gait_is_walking").click();
  await page.keyboard.press("Home");
  await page.keyboard.type("rule 0.7 typed: low -> normal\n");
  await expect(page.getByText("3 labels, 4 rules")).toBeVisible();
  const downloaded = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download" }).click();
  const file = await downloaded;
  expect(file.suggestedFilename()).toBe("warehouse.prsl");
  expect(readFileSync(await file.path(), "utf8")).toContain("rule 0.7 typed: low -> normal\n");
});

test("the tour shows itself once, and Escape ends it", async ({ page }) => {
  await page.goto("/");
  const tour = page.getByRole("complementary", { name: "Tour" });
  await tour.getByRole("button", { name: "Next" }).click();
  await expect(tour).toContainText("Ask why");
  await page.keyboard.press("Escape");
  await expect(tour).toHaveCount(0);
  await page.reload();
  await expect(page.getByTestId("best-probability")).toContainText("%");
  await expect(tour).toHaveCount(0);
});

test("views and sliders work with the keyboard at phone width, and nothing is cut off", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await open(page);
  await page.getByRole("slider", { name: "Belief in feet gait" }).focus();
  await page.keyboard.press("End");
  await expect(page.getByTestId("after-feet-gait")).toContainText("100.0%");
  await page.getByRole("tab", { name: "Situation" }).focus();
  for (const name of ["Why", "Rules", "Graph", "Cases"]) {
    await page.keyboard.press("ArrowRight");
    await expect(page.getByRole("tab", { name })).toBeFocused();
    const cut = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect(cut, name).toBeLessThanOrEqual(0);
  }
});
