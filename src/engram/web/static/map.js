// The map of the classes: near ones look alike. It can be zoomed, moved and walked with the arrow keys.
import { by, fit, s } from "./dom.js";
import { placeLabels } from "./labels.js";
import { list, percent, t } from "./text.js";

const EDGE = 40, CLOSEST = 12, STEP = 1.5, LONGEST = 24;  // pixels, zoom, zoom per press, letters of a label
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const ZOOMS = { "+": STEP, "=": STEP, "-": 1 / STEP };
const clamp = (value, least, most) => Math.min(most, Math.max(least, value));

export class ClassMap {
  constructor() {
    this.found = null;  // names that are searched for
    this.active = null;
    this.whole();
    by("zoom-in").onclick = () => this.zoom(STEP);
    by("zoom-out").onclick = () => this.zoom(1 / STEP);
    by("zoom-whole").onclick = () => { this.whole(); this.place(); };
  }

  whole() { Object.assign(this, { scale: 1, left: 0, top: 0 }); }

  show(model) {
    const classes = model.classes;
    by("map-view").hidden = classes.length < 2 || model.map_shows === null;
    if (by("map-view").hidden) return;
    this.classes = classes;
    if (!classes.some((one) => one.name === this.active)) this.active = null;
    by("map-note").textContent = t("map.note", { share: percent(model.map_shows) });
    by("map-names").textContent = t("map.hint");
    fit(by("map"), (width) => this.draw(width));
  }

  find(names) {
    this.found = names;
    if (this.dots) this.place();
  }

  draw(width) {
    this.width = width;
    this.height = Math.round(clamp(width * 0.68, 280, 520));
    const xs = this.classes.map((one) => one.x), ys = this.classes.map((one) => one.y);
    const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const unit = Math.min((width - 2 * EDGE) / (x1 - x0 || 1), (this.height - 2 * EDGE) / (y1 - y0 || 1));
    this.spots = this.classes.map((one) => [width / 2 + (one.x - (x0 + x1) / 2) * unit, this.height / 2 + (one.y - (y0 + y1) / 2) * unit]);
    this.lines = s("g", { class: "lines", "aria-hidden": "true" });
    this.dots = this.classes.map((one, i) => this.dot(one, i));
    this.labels = this.classes.map((one) => s("text", {}, one.name.length > LONGEST ? `${one.name.slice(0, LONGEST - 1)}…` : one.name));
    this.svg = s("svg", { viewBox: `0 0 ${width} ${this.height}`, width, height: this.height, class: "map", role: "listbox", "aria-label": t("map.label") },
      this.lines, s("g", {}, this.dots), s("g", { "aria-hidden": "true", class: "labels" }, this.labels));
    this.svg.addEventListener("keydown", (event) => this.press(event));
    this.svg.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.listenToPointers();
    by("map").replaceChildren(this.svg);
    const pen = new OffscreenCanvas(1, 1).getContext("2d"), style = getComputedStyle(this.labels[0]);
    pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    this.line = parseFloat(style.fontSize);
    this.widths = this.labels.map((label) => pen.measureText(label.textContent).width);
    this.place();
  }

  dot(one, i) {
    const near = list(one.neighbours.map((other) => other.name));
    const dot = s("g", { role: "option", "aria-selected": "false", class: "dot", "aria-label": near ? t("map.near", { name: one.name, near }) : one.name },
      s("circle", { r: 7 }), s("circle", { r: 18, class: "target" }));
    dot.style.setProperty("--hue", one.hue);
    for (const kind of ["pointerenter", "focus", "click"]) dot.addEventListener(kind, () => this.choose(i, kind === "focus"));
    return dot;
  }

  at(i) { return [this.spots[i][0] * this.scale + this.left, this.spots[i][1] * this.scale + this.top]; }

  // Shows which are near a class, in words and lines; `reach` brings it into view.
  choose(i, reach) {
    const one = this.classes[i];
    this.active = one.name;
    const near = list(one.neighbours.map((other) => other.name));
    by("map-names").textContent = near ? t("map.nearest", { name: one.name, near }) : one.name;
    if (reach) {
      const [x, y] = this.at(i);
      this.left += clamp(x, EDGE, this.width - EDGE) - x;
      this.top += clamp(y, EDGE, this.height - EDGE) - y;
    }
    this.place();
  }

  place() {
    this.left = clamp(this.left, this.width * (1 - this.scale), 0);
    this.top = clamp(this.top, this.height * (1 - this.scale), 0);
    const chosen = this.classes.findIndex((one) => one.name === this.active);
    const near = new Set(this.classes[chosen]?.neighbours.map((other) => other.name));
    const inside = ([x, y]) => x >= 0 && x <= this.width && y >= 0 && y <= this.height;
    const points = this.classes.map((one, i) => {
      const [x, y] = this.at(i), found = this.found?.has(one.name);
      return { x, y, width: this.widths[i], rank: i === chosen ? 0 : found ? 1 : near.has(one.name) ? 2 : one.health?.state === "lost" ? 3 : 4 };
    });
    const shown = points.map((point, i) => i).filter((i) => inside([points[i].x, points[i].y]) && !(this.found && !this.found.has(this.classes[i].name) && i !== chosen));
    const places = placeLabels(shown.map((i) => points[i]), { width: this.width, height: this.height, line: this.line });
    for (const label of this.labels) label.style.display = "none";
    shown.forEach((i, j) => {
      if (!places[j]) return;
      this.labels[i].style.display = "";
      this.labels[i].setAttribute("x", places[j].x);
      this.labels[i].setAttribute("y", places[j].y);
    });
    this.dots.forEach((dot, i) => {
      dot.setAttribute("transform", `translate(${points[i].x} ${points[i].y})`);
      dot.setAttribute("tabindex", i === Math.max(0, chosen) ? 0 : -1);
      dot.setAttribute("aria-selected", String(i === chosen));
      dot.classList.toggle("dim", Boolean(this.found) && !this.found.has(this.classes[i].name));
    });
    this.drawLines(chosen);
    by("zoom-out").disabled = by("zoom-whole").disabled = this.scale === 1;
    by("zoom-in").disabled = this.scale === CLOSEST;
    this.svg.classList.toggle("zoomed", this.scale > 1);
  }

  drawLines(chosen) {
    this.lines.replaceChildren(...(this.classes[chosen]?.neighbours ?? []).map((other) => {
      const [x1, y1] = this.at(chosen), [x2, y2] = this.at(this.classes.findIndex((one) => one.name === other.name));
      const line = s("line", { x1, y1, x2, y2 });
      line.style.setProperty("--near", (1 + other.similarity) / 2);
      return line;
    }));
  }

  // Zooms and keeps the point (x, y) where it is.
  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const scale = clamp(this.scale * factor, 1, CLOSEST), real = scale / this.scale;
    Object.assign(this, { scale, left: x - (x - this.left) * real, top: y - (y - this.top) * real });
    this.place();
  }

  // A wheel scrolls the page; over a map that has the focus, or with Ctrl (as a pinch on a touchpad), it zooms.
  wheel(event) {
    if (!event.ctrlKey && !this.svg.contains(document.activeElement)) return;
    event.preventDefault();
    this.zoom(Math.exp(-event.deltaY / 300), event.offsetX, event.offsetY);
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [dx, dy] = KEYS[event.key] ?? [0, 0];
    if (dx || dy) this.step(dx, dy);
    else if (event.key in ZOOMS) this.zoom(ZOOMS[event.key], ...this.at(this.chosen()));
    else if (event.key === "0") { this.whole(); this.place(); } else return;
    event.preventDefault();
  }

  chosen() { return Math.max(0, this.classes.findIndex((one) => one.name === this.active)); }

  // To the nearest class in that direction; what lies aside counts more than what lies ahead.
  step(dx, dy) {
    const [x, y] = this.spots[this.chosen()];
    const far = this.spots.map(([x2, y2]) => {
      const ahead = (x2 - x) * dx + (y2 - y) * dy, aside = Math.abs((x2 - x) * dy) + Math.abs((y2 - y) * dx);
      return ahead > 0 ? ahead + 2 * aside : Infinity;
    });
    const nearest = far.indexOf(Math.min(...far));
    if (far[nearest] < Infinity) this.dots[nearest].focus();
  }

  // One finger or the mouse moves a map that is zoomed, two fingers zoom.
  listenToPointers() {
    const down = new Map();
    const middle = () => { const all = [...down.values()]; return [0, 1].map((axis) => all.reduce((sum, one) => sum + one[axis], 0) / all.length); };
    const spread = () => { const [[ax, ay], [bx, by_]] = [...down.values()]; return Math.hypot(ax - bx, ay - by_) || 1; };
    const where = (event) => { const box = this.svg.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    this.svg.addEventListener("pointerdown", (event) => down.set(event.pointerId, where(event)));
    this.svg.addEventListener("pointermove", (event) => {
      if (!down.has(event.pointerId)) return;
      const [x, y] = middle(), apart = down.size > 1 ? spread() : 0;
      down.set(event.pointerId, where(event));
      const [x2, y2] = middle();
      this.left += x2 - x;
      this.top += y2 - y;
      if (apart) this.zoom(spread() / apart, x2, y2); else this.place();
    });
    for (const kind of ["pointerup", "pointercancel", "pointerleave"]) this.svg.addEventListener(kind, (event) => down.delete(event.pointerId));
  }
}
