// Places labels on the left and rules on the right, each near what it is connected with. The same model always gives
// the same picture.

export interface Box {
  key: string;
  height: number;
}
export interface Placed {
  key: string;
  top: number;
  height: number;
}
export interface Layout {
  left: Placed[];
  right: Placed[];
  height: number;
}

/** Rounds of ordering each side by the mean position of its neighbors. */
const ROUNDS = 8;
const GAP = 14;

export function layout(left: Box[], right: Box[], edges: [string, string][]): Layout {
  let [lefts, rights] = [left, right];
  for (let round = 0; round < ROUNDS; round++) {
    rights = ordered(rights, lefts, edges.map(([l, r]) => [r, l]));
    lefts = ordered(lefts, rights, edges);
  }
  const height = Math.max(total(lefts), total(rights));
  return { left: placed(lefts, height), right: placed(rights, height), height };
}

/** The boxes by the mean position of their neighbors. Boxes without one stay where they are. */
function ordered(boxes: Box[], others: Box[], edges: [string, string][]): Box[] {
  const position = new Map(others.map((box, i) => [box.key, i / Math.max(1, others.length - 1)]));
  const mean = (box: Box, i: number) => {
    const near = edges.filter(([from]) => from === box.key).map(([, to]) => position.get(to) ?? 0);
    if (near.length === 0) return i / Math.max(1, boxes.length - 1);
    return near.reduce((sum, it) => sum + it, 0) / near.length;
  };
  const keyed = boxes.map((box, i) => ({ box, i, mean: mean(box, i) }));
  return keyed.sort((a, b) => a.mean - b.mean || a.i - b.i).map((it) => it.box);
}

const total = (boxes: Box[]) => boxes.reduce((sum, box) => sum + box.height + GAP, GAP);

/** One below the other, spread over the whole height. */
function placed(boxes: Box[], height: number): Placed[] {
  const space = GAP + (height - total(boxes)) / Math.max(1, boxes.length + 1);
  let top = 0;
  return boxes.map((box) => {
    top += space;
    const result = { key: box.key, top, height: box.height };
    top += box.height;
    return result;
  });
}
