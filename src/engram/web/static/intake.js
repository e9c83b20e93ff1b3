// Taking pictures in: dropped, chosen or pasted. What is no picture is not dropped silently, but listed with the reason.
import { button, h } from "./dom.js";
import { list, t } from "./text.js";

const PICTURE = /\.(jpe?g|png|webp|gif|bmp|tiff?|avif|hei[cf])$/i;
const NOT_THE_OWNERS = /^(\..*|thumbs\.db|desktop\.ini)$/i;  // what systems leave in folders
const NAMED = 6;  // files named in a list of those left out
const isPicture = (file) => file.type.startsWith("image/") || PICTURE.test(file.name);

// [{ folder, file }] of a drop; `folder` is the name of the folder a file lies in, or "".
async function fromDrop(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return fromFiles(transfer.files);
  const found = [];
  for (const entry of entries) await walk(entry, "", found);
  return found;
}

async function walk(entry, folder, found) {
  if (entry.isFile) {
    const file = await new Promise((resolve) => { entry.file(resolve, () => resolve(new File([], entry.name))); });
    found.push({ folder, file });
    return;
  }
  const reader = entry.createReader();
  for (;;) {  // a reader gives a hundred at a time
    const batch = await new Promise((resolve) => { reader.readEntries(resolve, () => resolve([])); });
    if (!batch.length) return;
    for (const child of batch) await walk(child, entry.name, found);
  }
}

export const fromFiles = (files) => [...files].map((file) => ({ folder: (file.webkitRelativePath ?? "").split("/").at(-2) ?? "", file }));

// The pictures among the files, and what is left out: [{ name, why }].
export function sort(files) {
  const own = files.filter(({ file }) => !NOT_THE_OWNERS.test(file.name));
  const left = own.filter(({ file }) => !isPicture(file)).map(({ file }) => ({ name: file.name, why: t("left.notpicture") }));
  return { found: own.filter(({ file }) => isPicture(file)), left };
}

// A place to drop pictures on, with buttons for those who do not drop. `take` gets [{ folder, file }].
export function dropZone({ text, take, camera }) {
  const chosen = (event) => { take(fromFiles(event.target.files)); event.target.value = ""; };
  const choose = h("input", { type: "file", accept: "image/*,.heic,.heif", multiple: true, className: "hidden-input", onchange: chosen });
  const zone = h("div", { className: "zone" },
    h("p", { className: "soft" }, text),
    h("div", { className: "row" }, h("label", { className: "button plain" }, t("intake.choose"), choose), button("plain", t("camera.open"), camera)));
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", async (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    take(await fromDrop(event.dataTransfer));
  });
  return zone;
}

// Pictures from the clipboard go where one was last: `places` are [{ element, take }], the first is for a start.
export function takePasted(places) {
  let last = null;
  for (const kind of ["focusin", "pointerdown"]) document.addEventListener(kind, (event) => { last = event.target; });
  document.addEventListener("paste", (event) => {
    const files = [...event.clipboardData.files];
    if (!files.length) return;
    event.preventDefault();
    const shown = places().filter(({ element }) => element.checkVisibility());
    const place = shown.find(({ element }) => element.contains(last)) ?? shown[0];
    place?.take(files.map((file) => ({ folder: "", file: new File([file], t("intake.pasted"), { type: file.type }) })));
  });
}

// A list of what was left out that grows; hidden as long as that is nothing.
export class LeftOut {
  constructor() {
    this.reasons = new Map();
    this.element = h("div", { className: "left", role: "status", hidden: true });
  }

  add(left) {
    for (const { name, why } of left) this.reasons.set(why, [...(this.reasons.get(why) ?? []), name]);
    const n = [...this.reasons.values()].flat().length;
    this.element.hidden = n === 0;
    this.element.replaceChildren(h("strong", {}, t("left.title", { n })), h("ul", {}, [...this.reasons].map(([why, names]) => {
      const more = names.length > NAMED ? [t("left.more", { n: names.length - NAMED })] : [];
      return h("li", {}, t("left.line", { names: list([...names.slice(0, NAMED), ...more]), why }));
    })), button("quiet", t("left.close"), () => this.clear()));
  }

  clear() {
    this.reasons.clear();
    this.element.hidden = true;
  }
}
