// The charts: a map of the classes, right answers over time, and bytes.
import { by, bytes, h, plural, s } from "./dom.js";

const WIDTH = 640, HEIGHT = 420, EDGE = 46, LABELLED = 60;

export function drawCharts(model) {
  drawMap(model);
  drawAccuracy(model.history);
  drawBytes(model);
}

function drawMap(model) {
  const classes = model.classes;
  by("map-view").hidden = classes.length < 2 || model.map_shows === null;
  if (by("map-view").hidden) return;
  const xs = classes.map((one) => one.x), ys = classes.map((one) => one.y);
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const scale = Math.min((WIDTH - 2 * EDGE) / (right - left || 1), (HEIGHT - 2 * EDGE) / (bottom - top || 1));
  const places = new Map(classes.map((one) => [one.name, [
    WIDTH / 2 + (one.x - (left + right) / 2) * scale, HEIGHT / 2 + (one.y - (top + bottom) / 2) * scale]]));
  const lines = s("g", { class: "lines" }), dots = s("g", {});
  const near = (one) => {
    const [x1, y1] = places.get(one.name);
    lines.replaceChildren(...one.neighbours.map((other) => {
      const [x2, y2] = places.get(other.name);
      const line = s("line", { x1, y1, x2, y2 });
      line.style.setProperty("--near", Math.max(0.3, other.similarity));
      return line;
    }));
    const listed = one.neighbours.map((other) => `${other.name} ${other.similarity.toFixed(2)}`).join(", ");
    by("map-names").textContent = `${one.name}: nearest are ${listed}`;
  };
  for (const one of classes) {
    const [x, y] = places.get(one.name);
    const anchor = x > WIDTH - 110 ? "end" : x < 110 ? "start" : "middle";
    const offset = anchor === "middle" ? [0, -15] : [anchor === "end" ? -14 : 14, 4];
    const dot = s("g", { tabindex: 0, role: "img", "aria-label": `${one.name}, nearest: ${one.neighbours.map((other) => other.name).join(", ")}`, class: "dot" },
      s("circle", { cx: x, cy: y, r: 8 }),
      s("circle", { cx: x, cy: y, r: 18, class: "target" }),
      classes.length <= LABELLED && s("text", { x: x + offset[0], y: y + offset[1], "text-anchor": anchor }, one.name));
    dot.style.setProperty("--hue", one.hue);
    for (const event of ["pointerenter", "focus", "click"]) dot.addEventListener(event, () => near(one));
    dots.append(dot);
  }
  by("map").replaceChildren(s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "map", role: "group", "aria-label": "Map of the classes" }, lines, dots));
  by("map-note").textContent = `Class vectors by cosine similarity; the map keeps ${Math.round(100 * model.map_shows)} % of the distances between them. Hover over a class, or reach it with Tab, to see which it may be confused with.`;
  by("map-names").textContent = "";
}

function drawAccuracy(history) {
  const lessons = history.filter((change) => change.checked > 0);
  by("accuracy-view").hidden = !lessons.length;
  const x = (i) => (lessons.length === 1 ? 330 : 84 + (i / (lessons.length - 1)) * 490), y = (share) => 20 + 130 * (1 - share);
  const label = (change) => `${describeShort(change)}: ${change.right} of ${change.checked} right`;
  const chart = s("svg", { viewBox: "0 0 600 180", class: "chart", role: "img", "aria-label": lessons.map(label).join("; ") });
  for (const share of [0, 0.5, 1]) {
    chart.append(s("line", { x1: 78, x2: 580, y1: y(share), y2: y(share), class: "grid" }),
      s("text", { x: 70, y: y(share) + 5, "text-anchor": "end" }, `${100 * share}%`));
  }
  const points = lessons.map((change, i) => [x(i), y(change.right / change.checked)]);
  if (points.length > 1) chart.append(s("polyline", { points: points.map((point) => point.join(",")).join(" ") }));
  const every = Math.ceil(lessons.length / 6);
  lessons.forEach((change, i) => {
    chart.append(s("circle", { cx: points[i][0], cy: points[i][1], r: 6 }, s("title", {}, label(change))));
    const anchor = lessons.length === 1 ? "middle" : i === 0 ? "start" : i === lessons.length - 1 ? "end" : "middle";
    if (i % every === 0) chart.append(s("text", { x: points[i][0], y: 176, "text-anchor": anchor }, shorten(describeShort(change))));
  });
  by("accuracy").replaceChildren(chart);
}

const describeShort = (change) => (change.what === "base" ? "base" : `+ ${Object.keys(change.pictures)[0]}`);
const shorten = (text) => (text.length > 12 ? `${text.slice(0, 11)}…` : text);

function drawBytes(model) {
  const pictures = model.history.reduce((sum, change) => sum + change.bytes, 0);
  const classes = model.bytes_per_class * model.classes.length, samples = model.bytes_by_group["stored samples"] ?? 0;
  const rows = [
    classes && ["Kept per class", classes, `${bytes(model.bytes_per_class)} each`],
    samples && ["Feature vectors of pictures", samples, "this method keeps them; they grow with every picture"],
    ["Shared by all classes", model.bytes - classes - samples, "the same size for ten classes and for a thousand"],
    ["Picture files, not kept", pictures, pictures ? "that were learned from" : "their size was not recorded", "unkept"],
  ].filter(Boolean);
  const most = Math.max(...rows.map((row) => row[1]), 1);
  by("bytes").replaceChildren(h("ul", { className: "sizes" }, rows.map(([what, count, note, kind]) => {
    const bar = h("span", { className: `fill ${kind ?? ""}` });
    bar.style.setProperty("--share", count / most);
    return h("li", {}, h("span", {}, what), h("b", {}, count ? bytes(count) : "–"), h("span", { className: "track" }, bar), h("small", { className: "soft" }, note));
  })));
  by("take-note").textContent = `${model.name}, ${bytes(model.bytes)}, version ${model.version}, ${plural(model.classes.length, "class", "classes")}; ${model.backbone}`;
}
