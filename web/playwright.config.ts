import { existsSync } from "node:fs";
import { defineConfig, devices } from "@playwright/test";

const port = Number(process.env.PRSL_PORT ?? 8931);
const road = "../../shared/rulebases/road-r.prsl";
const models = ["../examples/warehouse.prsl", ...(existsSync(road) ? [road] : [])].join(" ");
const chromium = process.env.CHROMIUM ?? "/usr/bin/chromium";

// The tests use the `prsl` that cargo built, and the Chromium of the system.
export default defineConfig({
  testDir: "tests",
  outputDir: "test-results",
  workers: 1,
  timeout: 60_000,
  expect: { timeout: 20_000 },
  reporter: "list",
  use: {
    ...devices["Desktop Chrome"],
    baseURL: `http://127.0.0.1:${port}`,
    launchOptions: {
      executablePath: chromium,
      args: [
        "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
        "--disable-sync", "--no-first-run",
      ],
    },
  },
  webServer: {
    command: `${process.env.PRSL ?? "../target/debug/prsl"} serve ${models} --addr 127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}/healthz`,
    stdout: "ignore",
    stderr: "ignore",
  },
});
