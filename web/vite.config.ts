import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

// The built files go into the server crate and have fixed names, so that the same sources give the same files.
export default defineConfig({
  plugins: [svelte()],
  base: "./",
  publicDir: "public",
  build: {
    outDir: "../crates/prsl-server/page",
    emptyOutDir: true,
    assetsDir: "page",
    assetsInlineLimit: 0,
    modulePreload: false,
    cssCodeSplit: false,
    target: "es2022",
    chunkSizeWarningLimit: 1000,
    rollupOptions: {
      output: {
        entryFileNames: "page/page.js",
        assetFileNames: "page/page[extname]",
      },
    },
  },
  server: { proxy: { "/api": "http://127.0.0.1:8080" } },
  test: { include: ["src/**/*.test.ts"] },
});
