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

export const plural = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

export function bytes(count) {
  if (count < 1000) return `${count} bytes`;
  for (const [size, unit] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]])
    if (count >= size) return `${(count / size).toFixed(count / size < 10 ? 1 : 0)} ${unit}`;
}

export const percent = (share) => `${Math.round(100 * share)} %`;

export function seconds(count) {
  return count < 90 ? `${Math.max(1, Math.round(count))} s` : `${Math.round(count / 60)} min`;
}

export function day(when) {
  return when ? new Date(when).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }) : "";
}

// A short message; with `action`, something can be done about it for a while.
export function toast(text, action) {
  const note = h("div", { className: "toast" }, h("span", {}, text));
  if (action) {
    note.append(h("button", { type: "button", className: "plain", onclick: () => { note.remove(); action.run(); } }, action.label));
  }
  by("toasts").append(note);
  setTimeout(() => note.remove(), action ? 15000 : 6000);
}

// Asks in the page's one dialog. With `value` there is a name to be typed, and that is the answer; otherwise true.
export function ask({ title, text, yes, value }) {
  const dialog = by("dialog"), input = by("dialog-input");
  by("dialog-title").textContent = title;
  by("dialog-text").textContent = text;
  by("dialog-yes").textContent = yes;
  by("dialog-field").hidden = value === undefined;
  input.value = value ?? "";
  input.required = value !== undefined;
  by("dialog-no").onclick = () => dialog.close("");
  dialog.returnValue = "";
  dialog.showModal();
  if (value !== undefined) input.select();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      const agreed = dialog.returnValue === "yes";
      resolve(agreed && value !== undefined ? input.value.trim() : agreed);
    }, { once: true });
  });
}
