// The figure of a class: its mean vector, folded into a few dozen strands, laid around a circle.
import { s } from "./dom.js";

export function figure(one, size = 112) {
  const n = one.strands.length, inner = 20, reach = 15;
  const at = (i, radius) => {
    const angle = (2 * Math.PI * i) / n - Math.PI / 2;
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  };
  const radius = (i) => inner + reach * one.strands[(i + n) % n];
  const points = one.strands.map((_, i) => at(i, (radius(i - 1) + 2 * radius(i) + radius(i + 1)) / 4));
  const middle = (a, b) => [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
  const text = (point) => point.map((value) => value.toFixed(2)).join(" ");
  let outline = `M${text(middle(points[n - 1], points[0]))}`;
  points.forEach((point, i) => { outline += `Q${text(point)} ${text(middle(point, points[(i + 1) % n]))}`; });
  const drawing = s("svg", { viewBox: "-40 -40 80 80", width: size, height: size, class: "figure", "aria-hidden": "true" },
    s("path", { d: `${outline}Z`, class: "body" }));
  one.strands.forEach((value, i) => {
    const [x1, y1] = at(i, inner), [x2, y2] = at(i, inner + reach * value);
    drawing.append(s("line", { x1: x1.toFixed(2), y1: y1.toFixed(2), x2: x2.toFixed(2), y2: y2.toFixed(2) }));
  });
  drawing.style.setProperty("--hue", one.hue);
  return drawing;
}
