// How well it does: the number or why there is none, right answers over time, and bytes.
import { bar, by, fit, h, s } from "./dom.js";
import { bytes, percent, t } from "./text.js";

const HEIGHT = 170, LEFT = 52, RIGHT = 16, LABEL = 96;

export function drawCharts(model) {
  drawAccuracy(model);
  drawHistory(model.history.filter((change) => change.accuracy !== null));
  drawBytes(model);
}

function drawAccuracy({ accuracy, classes }) {
  by("accuracy").replaceChildren(...(accuracy
    ? [h("p", { className: "figure" }, percent(accuracy.share)), h("p", {}, t("accuracy.right", { classes: t("classes", { n: accuracy.classes }) })),
      h("p", { className: "soft" }, t("basis.left-out", { n: accuracy.pictures }))]
    : [h("p", { className: "figure untold", ariaHidden: "true" }, "?"), h("p", {}, t("accuracy.untold"))]));
  by("confusion-open").hidden = !classes.some((one) => one.health);
}

// One point for each change after which it was known how every class does; there is nothing to say of the others.
function drawHistory(changes) {
  by("history-view").hidden = changes.length < 2;
  if (changes.length < 2) return;
  const label = (change) => t("history.point", { change: short(change), share: percent(change.accuracy) });
  fit(by("history"), (width) => {
    const x = (i) => LEFT + 8 + (i / (changes.length - 1)) * (width - LEFT - RIGHT - 16), y = (share) => 14 + (HEIGHT - 50) * (1 - share);
    const chart = s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, class: "chart", role: "img", "aria-label": changes.map(label).join("; ") });
    for (const share of [0, 0.5, 1]) {
      chart.append(s("line", { x1: LEFT, x2: width - RIGHT, y1: y(share), y2: y(share), class: "grid" }),
        s("text", { x: LEFT - 8, y: y(share) + 5, "text-anchor": "end" }, percent(share)));
    }
    const points = changes.map((change, i) => [x(i), y(change.accuracy)]);
    chart.append(s("polyline", { points: points.map((point) => point.join(",")).join(" ") }));
    const every = Math.ceil(changes.length / Math.max(1, Math.floor((width - LEFT) / LABEL)));
    changes.forEach((change, i) => {
      const anchor = i === 0 ? "start" : i === changes.length - 1 ? "end" : "middle";
      chart.append(s("circle", { cx: points[i][0], cy: points[i][1], r: 5 }, s("title", {}, label(change))));
      const fits = i % every === 0 && (i === 0 || i === changes.length - 1 || changes.length - 1 - i >= every / 2);
      if (fits) chart.append(s("text", { x: points[i][0] + { start: -8, middle: 0, end: 8 }[anchor], y: HEIGHT - 6, "text-anchor": anchor }, short(change)));
    });
    by("history").replaceChildren(chart);
  });
}

function short(change) {
  const names = Object.keys(change.pictures), name = names[0] ?? "";
  const text = change.what === "base" ? t("history.base") : names.length < 2 ? name : t("classes", { n: names.length });
  return text.length > 12 ? `${text.slice(0, 11)}…` : text;
}

function drawBytes(model) {
  const pictures = model.history.reduce((sum, change) => sum + change.bytes, 0);
  const classes = model.bytes_per_class * model.classes.length, samples = model.bytes_by_group["stored samples"] ?? 0;
  const rows = [
    classes > 0 && [t("bytes.classes"), classes, t("bytes.each", { size: bytes(model.bytes_per_class) })],
    samples > 0 && [t("bytes.samples"), samples, t("bytes.samples-note")],
    [t("bytes.shared"), model.bytes - classes - samples, t("bytes.shared-note")],
    [t("bytes.pictures"), pictures, t(pictures ? "bytes.pictures-note" : "bytes.pictures-unrecorded"), "unkept"],
  ].filter(Boolean);
  const most = Math.max(...rows.map((row) => row[1]), 1);
  by("bytes").replaceChildren(h("ul", { className: "sizes" }, rows.map(([what, count, note, kind]) => h("li", {},
    h("span", {}, what), h("b", {}, count ? bytes(count) : "–"), bar(count / most, kind), h("small", { className: "soft" }, note)))));
}
