// Trying: pictures or the camera in, the five best classes out.
import * as api from "./api.js";
import { openCamera } from "./camera.js";
import { bar, button, by, h } from "./dom.js";
import { dropZone, LeftOut, sort } from "./intake.js";
import { prepareAll, thumbnail } from "./shrink.js";
import { milliseconds, percent, t } from "./text.js";

const MOST = 24;  // answers on the page
const AT_ONCE = 2;
const PAUSE = 150, PAUSE_AFTER_PROBLEM = 1000;  // milliseconds between two frames of the camera

export class Try {
  // `teach` sends pictures with names; resolves to what went wrong, or null. `among.names` may be answers.
  constructor(teach, among) {
    Object.assign(this, { teach, among });
    this.waiting = [];
    this.asking = 0;
    this.left = new LeftOut();
    this.zone = dropZone({ text: t("try.drop"), take: (files) => this.take(files), camera: () => this.camera() });
    by("try-intake").append(this.zone, this.left.element);
    by("clear").onclick = () => { this.clear(); this.zone.querySelector("input").focus(); };
  }

  take(files) {
    const { found, left } = sort(files);
    by("try-problem").textContent = "";
    this.left.clear();
    this.left.add(left);
    prepareAll(found.map(({ file }) => file), (file, why) => {
      if (why) this.left.add([{ name: file.name, why }]);
      else this.ask(file);
    });
  }

  ask(file) {
    const item = h("li", { className: "answer waiting" }, h("p", { className: "soft" }, t("try.asking", { name: file.name })));
    by("answers").prepend(item);
    while (by("answers").childElementCount > MOST) by("answers").lastElementChild.remove();
    by("clear").hidden = false;
    this.waiting.push({ file, item });
    if (this.asking < AT_ONCE) this.next();
  }

  async next() {
    const job = this.waiting.shift();
    if (!job) return;
    this.asking += 1;
    try {
      const said = await api.predict(job.file, this.among.names);
      job.item.className = "answer";
      job.item.replaceChildren(await thumbnail(job.file, 160), describe(said, job.file.name, this.correction(job)));
    } catch (error) {
      job.item.replaceChildren(h("p", { className: "problem" }, t("left.line", { names: job.file.name, why: error.message })));
    }
    this.asking -= 1;
    this.next();
  }

  clear() {
    this.waiting = [];
    by("answers").replaceChildren();
    by("clear").hidden = true;
    this.left.clear();
  }

  // "Wrong? It is …": teaches this very picture.
  correction({ file }) {
    const input = h("input", { maxLength: 80, autocomplete: "off", spellcheck: false, dir: "auto" });
    input.setAttribute("list", "known");
    const problem = h("p", { className: "problem", role: "alert" });
    const send = async () => {
      const name = input.value.trim();
      if (!name) { input.focus(); return; }
      const wrong = await this.teach([{ name, file }]);
      problem.textContent = wrong ?? "";
      if (wrong === null) box.replaceChildren(h("p", { className: "soft" }, t("try.taught", { name })));
    };
    input.onkeydown = (event) => { if (event.key === "Enter" && !event.isComposing) send(); };
    const form = h("div", { className: "row correct" }, h("label", {}, t("try.it-is"), input), button("main", t("try.teach"), send));
    const open = button("quiet", t("try.wrong"), () => { open.replaceWith(form); input.focus(); });
    const box = h("div", { className: "correction" }, open, problem);
    return box;
  }

  camera() {
    let live = true;
    const item = h("div", { className: "answer live-answer", ariaLive: "off" });
    by("try-problem").textContent = "";
    openCamera(this.zone, {
      failed: (text) => { by("try-problem").textContent = text; },
      closed: () => { live = false; },
      controls: (frame) => {
        const watch = async () => {
          while (live) {
            let pause = PAUSE;
            try {
              const said = await api.predict(await frame(), this.among.names);
              if (live) { by("try-problem").textContent = ""; item.replaceChildren(describe(said)); }
            } catch (error) {
              by("try-problem").textContent = error.message;
              pause = PAUSE_AFTER_PROBLEM;
            }
            await new Promise((resolve) => { setTimeout(resolve, pause); });
          }
        };
        setTimeout(watch);
        return item;
      },
    });
  }
}

// What was said of a picture: its class or "unknown", and the best five.
function describe(said, name, correction) {
  const answer = said.answers[0];
  if (answer.problem) return h("p", { className: "problem" }, name ? t("left.line", { names: name, why: answer.problem }) : answer.problem);
  const unknown = answer.label === "unknown";
  const bars = answer.top.map((one, i) => h("li", { className: i === 0 && !unknown ? "best" : "" },
    h("span", { className: "label", dir: "auto" }, one.label), bar(one.probability), h("span", { className: "value" }, percent(one.probability))));
  return h("div", { className: "said" },
    name && h("p", { className: "file soft", dir: "auto" }, name),
    h("p", { className: "verdict" }, h("strong", { className: unknown ? "unknown" : "", dir: "auto" }, unknown ? t("try.unknown") : answer.label),
      h("span", { className: "soft" }, milliseconds(said.milliseconds))),
    unknown && h("p", { className: "soft" }, t("try.unknown-text")),
    h("ol", { className: "bars" }, bars), correction);
}
