// Trying: pictures or the camera in, the five best classes out.
import * as api from "./api.js";
import { openCamera } from "./camera.js";
import { by, h, percent } from "./dom.js";
import { dropZone, thumbnail } from "./pictures.js";

const MOST = 24;  // answers on the page
const AT_ONCE = 2;

export class Try {
  constructor() {
    this.waiting = [];
    this.asking = 0;
    this.zone = dropZone({ text: "Drop pictures", take: (found) => this.take(found), camera: () => this.camera() });
    by("try-intake").append(this.zone);
  }

  take(found) {
    by("try-problem").textContent = found.length ? "" : "There was no picture in that.";
    for (const { file } of found) {
      const item = h("li", { className: "answer" }, h("p", { className: "soft" }, "…"));
      by("answers").prepend(item);
      this.waiting.push({ file, item });
    }
    while (by("answers").childElementCount > MOST) by("answers").lastElementChild.remove();
    while (this.asking < AT_ONCE && this.waiting.length) this.next();
  }

  async next() {
    const job = this.waiting.shift();
    if (!job) return;
    this.asking += 1;
    try {
      const said = await api.predict(job.file);
      show(job.item, said, await thumbnail(job.file, 96));
    } catch (error) {
      job.item.replaceChildren(h("p", { className: "problem" }, error.message));
    }
    this.asking -= 1;
    this.next();
  }

  camera() {
    let live = true;
    const item = h("div", { className: "answer live-answer" });
    item.setAttribute("aria-live", "off");
    openCamera(this.zone, {
      failed: (text) => { by("try-problem").textContent = text; },
      closed: () => { live = false; },
      controls: (frame) => {
        const watch = async () => {
          while (live) {
            try {
              const said = await api.predict(await frame());
              if (live) { by("try-problem").textContent = ""; show(item, said); }
            } catch (error) {
              by("try-problem").textContent = error.message;
              await new Promise((resolve) => setTimeout(resolve, 1000));
            }
            await new Promise((resolve) => setTimeout(resolve, 150));
          }
        };
        setTimeout(watch);
        return item;
      },
    });
  }
}

function show(item, said, picture) {
  const answer = said.answers[0];
  if (answer.problem) {
    item.replaceChildren(h("p", { className: "problem" }, answer.problem));
    return;
  }
  const unknown = answer.label === "unknown";
  const bars = answer.top.map((one, i) => {
    const bar = h("span", { className: "fill" });
    bar.style.setProperty("--share", one.probability);
    return h("li", { className: i === 0 && !unknown ? "best" : "" },
      h("span", { className: "label" }, one.label), h("span", { className: "track" }, bar),
      h("span", { className: "value" }, percent(one.probability)));
  });
  item.replaceChildren(...[picture, h("div", { className: "said" },
    h("p", {}, h("strong", { className: unknown ? "unknown" : "" }, unknown ? "Unknown" : answer.label),
      h("span", { className: "soft" }, `${Math.round(said.milliseconds)} ms`)),
    unknown && h("p", { className: "soft" }, "It looks like nothing that was taught. If it had to be one of these:"),
    h("ol", { className: "bars" }, bars))].filter(Boolean));
}
