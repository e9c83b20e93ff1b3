// Pictures are made small before they are sent: a network looks at a few hundred pixels, a telephone makes 48 million.
import { h } from "./dom.js";
import { t } from "./text.js";

const LONGER = 640, SHORTER = 320;  // pixels; a panorama keeps enough of its height
const AT_ONCE = 2;
const HEIC = /\.hei[cf]$/i, ONLY_SERVERS_READ = /\.tiff?$/i;

// The picture to send: the very file if it is small, otherwise a smaller one, turned as it was held. Throws why not.
async function prepare(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file, { imageOrientation: "from-image" });
  } catch {
    if (HEIC.test(file.name) || /hei[cf]/.test(file.type)) throw new Error(t("left.heic"));
    if (ONLY_SERVERS_READ.test(file.name)) return file;
    throw new Error(file.size ? t("left.unreadable") : t("left.empty"));
  }
  const { width, height } = bitmap;
  const scale = Math.max(LONGER / Math.max(width, height), SHORTER / Math.min(width, height));
  const small = scale >= 1 && !HEIC.test(file.name) ? file : await redraw(bitmap, Math.min(1, scale), file.name);
  bitmap.close();
  return small;
}

// As JPEG on white, which is what the server makes of transparency.
export async function redraw(source, scale, name, width = source.width, height = source.height) {
  const canvas = new OffscreenCanvas(Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale)));
  const pen = canvas.getContext("2d");
  pen.fillStyle = "white";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.imageSmoothingQuality = "high";
  pen.drawImage(source, 0, 0, canvas.width, canvas.height);
  return new File([await canvas.convertToBlob({ type: "image/jpeg", quality: 0.92 })], name, { type: "image/jpeg" });
}

// Few at a time: a decoded photograph takes 200 MB. `done(file, why)` gets the picture to send, or why there is none; in
// the order of the files, whichever is ready first.
export async function prepareAll(files, done) {
  const waiting = files.entries(), ready = [];
  let next = 0;
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (const [i, file] of waiting) {
      ready[i] = await prepare(file).then((small) => [small], (error) => [file, error.message]);
      for (; ready[next]; next += 1) done(...ready[next]);
    }
  }));
}

// The middle of a picture on a small canvas.
export async function thumbnail(file, size = 96) {
  const canvas = h("canvas", { width: size, height: size, className: "thumb" });
  canvas.setAttribute("aria-hidden", "true");
  const bitmap = await createImageBitmap(file, { imageOrientation: "from-image" }).catch(() => null);
  if (!bitmap) {
    canvas.classList.add("blank");
    return canvas;
  }
  const side = Math.min(bitmap.width, bitmap.height);
  const pen = canvas.getContext("2d");
  pen.imageSmoothingQuality = "high";
  pen.drawImage(bitmap, (bitmap.width - side) / 2, (bitmap.height - side) / 2, side, side, 0, 0, size, size);
  bitmap.close();
  return canvas;
}
