import { AxeBuilder } from "@axe-core/playwright";
import { expect, test } from "@playwright/test";
import { open, percent, predicted, slide, view } from "./page";

test("a first visit shows the example, without a message of the browser", async ({ page }) => {
  const messages = await open(page);
  await expect(page.getByTestId("best-probability")).toHaveText("35.2%");
  await expect(page.getByTestId("after-activity-overhead")).toContainText("70.3%");
  await view(page, "Rules");
  await expect(page.getByText("8 of 8 expectations pass.")).toBeVisible();
  expect(messages).toEqual([]);
});

test("a typo in a rule has a squiggle and a message", async ({ page }) => {
  await open(page);
  await view(page, "Rules");
  await page.getByText("gait_is_walking").click();
  await page.keyboard.press("Home");
  await page.keyboard.type("rule 0.7: walkin -> gait\n");
  await expect(page.locator(".cm-lintRange-error")).toHaveText(/walkin/);
  await expect(page.getByText(/did you mean `walking`/)).toBeVisible();
  await expect(page.getByText("This text is not a model yet")).toBeVisible();
});

test("a moved slider gives the numbers of the command line", async ({ page }) => {
  await open(page);
  await slide(page, "Belief in feet gait", 0.6);
  const row = {
    "activity=walking": 0.1, "activity=normal": 0.4, "activity=overhead": 0.5,
    "feet=gait": 0.6, "feet=standing": 0.4, "hands=high": 0.5, "hands=centered": 0.3, "hands=low": 0.2,
  };
  const expected = predicted(row);
  for (const category of ["walking", "normal", "overhead"]) {
    const shown = page.getByTestId(`after-activity-${category}`);
    await expect(shown).toContainText(percent(expected[`activity=${category}`]));
  }
});

test("a link restores situation and text", async ({ page, context }) => {
  await open(page);
  await page.getByLabel("What is known about feet").selectOption("observed: standing");
  await view(page, "Rules");
  await page.getByText("gait_is_walking").click();
  await page.keyboard.press("Home");
  await page.keyboard.type("rule 0.7 typed: low -> normal\n");
  await expect(page.getByText("Edited here only")).toBeVisible();
  await expect(page.getByText("3 labels, 4 rules")).toBeVisible();
  await page.getByRole("button", { name: "Share" }).click();
  const shown = await page.getByTestId("after-hands-low").textContent();
  const other = await context.newPage();
  await open(other, page.url());
  await expect(other.getByText("3 labels, 4 rules")).toBeVisible();
  await expect(other.getByLabel("What is known about feet")).toHaveValue("=standing");
  await expect(other.getByTestId("after-hands-low")).toHaveText(shown ?? "");
});

test("impossible evidence raises the alarm", async ({ page }) => {
  await open(page);
  await page.getByLabel("What is known about feet").selectOption("observed: standing");
  await page.getByLabel("What is known about activity").selectOption("observed: walking");
  await expect(page.getByRole("alert")).toContainText("The evidence contradicts the rules.");
  await expect(page.getByRole("alert")).toContainText("gait_is_walking");
});

for (const scheme of ["light", "dark"] as const) {
  test(`axe finds nothing serious, ${scheme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: scheme });
    await open(page);
    for (const name of await page.getByRole("tab").allTextContents()) {
      await view(page, name);
      await page.waitForTimeout(500);
      const { violations } = await new AxeBuilder({ page }).analyze();
      const serious = violations.filter((it) => it.impact === "serious" || it.impact === "critical");
      const found = serious.map((it) => `${name}: ${it.id}: ${it.nodes.map((node) => node.html).join(" ")}`);
      expect(found).toEqual([]);
    }
  });
}
