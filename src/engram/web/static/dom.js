// Making elements. Text is always text: nothing here, or anywhere on the page, is parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !(element instanceof SVGElement)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
export const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
export const by = (id) => document.getElementById(id);
export const button = (className, text, onclick, more = {}) => h("button", { type: "button", className, onclick, ...more }, text);

export function bar(share, kind = "") {
  const part = h("span", { className: `fill ${kind}` });
  part.style.setProperty("--share", share);
  return h("span", { className: "track" }, part);
}

// Calls `draw(width)` now and whenever `place` gets another width, so that text in a drawing keeps its size.
const drawings = new Map();
const watcher = new ResizeObserver((entries) => {
  for (const { target } of entries) if (target.clientWidth) drawings.get(target)(target.clientWidth);
});
export function fit(place, draw) {
  drawings.set(place, draw);
  watcher.observe(place);
  if (place.clientWidth) draw(place.clientWidth);
}
