import { describe, expect, it } from "vitest";
import type { Label } from "./api";
import { cells, table } from "./csv";
import { Latest } from "./latest";
import { layout } from "./layout";
import { positions } from "./offsets";
import { ranges, rowsAt, sweeps } from "./sensitivity";
import { beliefsOf, fitting, moved, percent, shown, startOf, type Situation } from "./situation";
import { decode, encode, type Shared } from "./url";

function label(name: string, categories: string[]): Label {
  const prior = categories.map(() => 1 / categories.length);
  return { index: 0, name, categories, prior, has_prior: false, classifier: name, calibrator: null };
}

describe("situation", () => {
  it("keeps proportions when one category moves", () => {
    expect(moved([0.1, 0.4, 0.5], 0, 0.55)).toEqual([0.55, 0.2, 0.25]);
    expect(moved([1, 0, 0], 0, 0.5)).toEqual([0.5, 0.25, 0.25]);
    expect(moved([0.3, 0.7], 1, 1)).toEqual([0, 1]);
  });
  it("starts with the paper's input only for the paper's labels", () => {
    const labels = [label("feet", ["gait", "standing"])];
    expect(startOf(labels)).toEqual({ feet: { belief: [0.05, 0.95] } });
    expect(startOf([label("feet", ["left", "right"])])).toEqual({});
  });
  it("drops what an edited model does not know", () => {
    const situation: Situation = { a: { belief: [0.1, 0.9] }, b: { observed: "x" }, c: { observed: "gone" } };
    const labels = [label("a", ["yes", "no", "perhaps"]), label("b", ["x", "y"]), label("c", ["x", "y"])];
    expect(fitting(situation, labels)).toEqual({ b: { observed: "x" } });
    expect(beliefsOf({ a: { belief: [0.1, 0.9] }, b: { observed: "x" } })).toEqual({ a: [0.1, 0.9], b: "x" });
    expect(shown(label("b", ["x", "y"]), { observed: "y" })).toEqual([0, 1]);
  });
  it("never rounds to certainty", () => {
    expect([percent(0), percent(0.0001), percent(0.99999), percent(1), percent(null)]).toEqual([
      "0.0%", "<0.1%", ">99.9%", "100.0%", "–",
    ]);
  });
});

describe("address", () => {
  const state: Shared = {
    model: "warehouse",
    situation: { feet: { observed: "standing" }, wärme: { belief: [0.3, 0.7] } },
    text: "label a # ✓\n",
    rules: { "1": "off", "2": 0.7 },
    label: "feet",
  };
  it("carries the whole state", async () => {
    const text = await encode(state);
    expect(text).toMatch(/^[\w-]+$/);
    expect(await decode(text)).toEqual(state);
  });
  it("ignores what is damaged or foreign", async () => {
    for (const text of ["", "!", "abc", await encode({ model: 3 } as unknown as Shared)]) {
      expect(await decode(text)).toBeNull();
    }
  });
});

describe("positions", () => {
  it("maps bytes to characters", () => {
    expect(positions("abc")(2)).toBe(2);
    expect([0, 1, 3, 6, 10].map(positions("aé✓😀b"))).toEqual([0, 1, 2, 3, 5]);
    expect(positions("é")(9)).toBe(1);
  });
});

describe("latest", () => {
  it("drops what nobody waits for", async () => {
    const latest = new Latest();
    const ran: number[] = [];
    for (const i of [1, 2, 3]) {
      latest.run(async () => {
        await Promise.resolve();
        ran.push(i);
      });
    }
    await new Promise((done) => setTimeout(done, 10));
    expect(ran).toEqual([1, 3]);
  });
});

describe("table", () => {
  const labels = [label("feet", ["gait", "standing"]), label("rain", ["yes", "no"])];
  it("reads beliefs, observations and gaps", () => {
    const text = "\ufefffeet=gait,feet=standing,rain,other\r\n0.2,0.8,yes,x\r\n,,0.25,\r\n0.4,,,\r\n";
    const { rows, unused } = table(text, labels);
    expect(rows).toEqual([
      { feet: { belief: [0.2, 0.8] }, rain: { observed: "yes" } },
      { rain: { belief: [0.25, 0.75] } },
      { feet: { belief: [0.4, 0.6] } },
    ]);
    expect(unused).toEqual(["other"]);
  });
  it("reads quoted cells", () => {
    expect(cells('a,"b ""c"", d\ne"\n1,2')).toEqual([["a", 'b "c", d\ne'], ["1", "2"]]);
  });
  it("says which cell is wrong", () => {
    expect(() => table("feet\nwalking", labels)).toThrow("row 1: `walking` is not a category of `feet`");
    expect(() => table("feet=gait\n1.5", labels)).toThrow("row 1, column `feet=gait`: `1.5` is not a number");
    expect(() => table("", labels)).toThrow("the file is empty");
  });
});

describe("layout", () => {
  const boxes = (keys: string[]) => keys.map((key) => ({ key, height: 10 }));
  it("places nothing over anything else, and connected boxes near each other", () => {
    const edges: [string, string][] = [["a", "3"], ["b", "2"], ["c", "1"]];
    const { left, right, height } = layout(boxes(["a", "b", "c"]), boxes(["1", "2", "3"]), edges);
    for (const side of [left, right]) {
      side.slice(1).forEach((box, i) => expect(box.top).toBeGreaterThanOrEqual((side[i]?.top ?? 0) + 10));
      expect((side.at(-1)?.top ?? 0) + 10).toBeLessThanOrEqual(height);
    }
    const at = new Map([...left, ...right].map((box) => [box.key, box.top]));
    for (const [from, to] of edges) expect(at.get(from)).toBe(at.get(to));
  });
});

describe("sensitivity", () => {
  const labels = [label("feet", ["gait", "standing"]), label("hands", ["high", "centered", "low"])];
  it("moves one belief at a time, and ranks by range", () => {
    const all = sweeps(labels);
    expect(all.map((it) => it.category)).toEqual(["gait", "high", "centered", "low"]);
    const rows = rowsAt({ label: "feet", category: "gait", index: 0 }, [0.2], labels, {});
    expect(rows).toEqual([{ feet: [0.2, 0.8] }]);
    const answers = [0.4, 0.5, 0.9, 0.1].map((yes) => ({ status: "ok", marginals: { rain: { yes } } }));
    const found = ranges(all.slice(0, 2), answers, "rain", "yes");
    expect(found.map((it) => [it.sweep.category, it.low, it.high])).toEqual([["high", 0.1, 0.9], ["gait", 0.4, 0.5]]);
  });
});
