// Labels that do not collide: in order of importance, each gets the first place beside its point where it covers neither
// a point nor another label, or none.

const GAP = 6, DOT = 7;  // pixels between a point and its label; a point's radius with some air

const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

// `points` are [{ x, y, width, rank }], the lowest rank first. Gives [{ x, y }], the label's lower left corner, or null.
export function placeLabels(points, { width, height, line }) {
  const taken = points.map(({ x, y }) => ({ left: x - DOT, right: x + DOT, top: y - DOT, bottom: y + DOT }));
  const places = points.map(() => null);
  const order = points.map((_, i) => i).sort((a, b) => points[a].rank - points[b].rank);
  for (const i of order) {
    const { x, y, width: wide } = points[i], far = DOT + GAP;
    const corners = [[x - wide / 2, y - far + GAP / 2], [x + far, y + line / 3], [x - far - wide, y + line / 3], [x - wide / 2, y + far + line - GAP]];
    const boxes = corners.map(([left, bottom]) => ({ left, right: left + wide, top: bottom - line, bottom: bottom + line / 4 }));
    const fits = boxes.findIndex((box) => box.left >= 0 && box.right <= width && box.top >= 0 && box.bottom <= height && !taken.some((other, j) => j !== i && overlap(box, other)));
    if (fits < 0) continue;
    places[i] = { x: corners[fits][0], y: corners[fits][1] };
    taken.push(boxes[fits]);
  }
  return places;
}
