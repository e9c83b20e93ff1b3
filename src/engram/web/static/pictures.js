// Taking pictures in: dropped, chosen or from the camera. They stay in this tab until they are sent.
import { h } from "./dom.js";

const IMAGE = /\.(jpe?g|png|webp|gif|bmp|tiff?|avif)$/i;
const isPicture = (file) => file.type.startsWith("image/") || IMAGE.test(file.name);

// The pictures of a drop or an input as [{ folder, file }]; `folder` is the name of the folder a picture lies in, or "".
export async function fromDrop(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return fromFiles(transfer.files);
  const found = [];
  for (const entry of entries) await walk(entry, "", found);
  return found;
}

async function walk(entry, folder, found) {
  if (entry.isFile) {
    const file = await new Promise((resolve) => entry.file(resolve, () => resolve(null)));
    if (file && isPicture(file)) found.push({ folder, file });
    return;
  }
  const reader = entry.createReader();
  for (;;) {  // a reader gives a hundred at a time
    const batch = await new Promise((resolve) => reader.readEntries(resolve, () => resolve([])));
    if (!batch.length) return;
    for (const child of batch) await walk(child, entry.name, found);
  }
}

export function fromFiles(files) {
  return [...files].filter(isPicture).map((file) => {
    const path = (file.webkitRelativePath ?? "").split("/");
    return { folder: path.length > 1 ? path.at(-2) : "", file };
  });
}

// A small copy on a canvas; the original is not decoded again.
export async function thumbnail(file, size = 72) {
  const canvas = h("canvas", { width: size, height: size, className: "thumb" });
  try {
    const bitmap = await createImageBitmap(file);
    const side = Math.min(bitmap.width, bitmap.height);
    const pen = canvas.getContext("2d");
    pen.imageSmoothingQuality = "high";
    pen.drawImage(bitmap, (bitmap.width - side) / 2, (bitmap.height - side) / 2, side, side, 0, 0, size, size);
    bitmap.close();
  } catch {
    canvas.classList.add("blank");  // the server may read what the browser does not
  }
  return canvas;
}

// A place to drop pictures on, with buttons for those who do not drop. `take` gets [{ folder, file }].
export function dropZone({ text, take, camera }) {
  const chosen = (event) => { take(fromFiles(event.target.files)); event.target.value = ""; };
  const zone = h("div", { className: "zone" },
    h("p", { className: "soft" }, text),
    h("div", { className: "row" },
      h("label", { className: "button plain" }, "Choose pictures",
        h("input", { type: "file", accept: "image/*", multiple: true, className: "hidden-input", onchange: chosen })),
      camera && h("button", { type: "button", className: "plain", onclick: camera }, "Camera")));
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", async (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    take(await fromDrop(event.dataTransfer));
  });
  return zone;
}
