// One class in the form: its name, and pictures that were not sent yet.
import { openCamera, shutter } from "./camera.js";
import { button, h } from "./dom.js";
import { dropZone, LeftOut } from "./intake.js";
import { prepareAll, thumbnail } from "./shrink.js";
import { t } from "./text.js";

const SHOWN = 36;  // thumbnails of a class

export class Group {
  constructor(form, name) {
    this.form = form;
    this.files = [];
    this.reading = 0;
    this.input = h("input", { value: name, maxLength: 80, placeholder: t("group.example"), autocomplete: "off", spellcheck: false, dir: "auto",
      enterKeyHint: "done", oninput: () => form.changed(), onkeydown: (event) => { if (event.key === "Enter" && !event.isComposing) form.enter(this); } });
    this.input.setAttribute("list", "known");
    this.count = h("span", { className: "soft count", role: "status" });
    this.thumbs = h("ul", { className: "thumbs" });
    this.remove = button("quiet corner", t("group.remove"), () => form.drop(this));
    this.problem = h("p", { className: "problem", role: "alert" });
    this.left = new LeftOut();
    this.zone = dropZone({ text: t("group.drop"), take: (files) => form.take(files, this), camera: () => this.camera() });
    this.element = h("fieldset", { className: "group" },
      h("div", { className: "name" }, h("label", {}, t("group.name"), this.input), this.remove),
      this.zone, this.problem, this.count, this.thumbs, this.left.element);
  }

  get name() { return this.input.value.normalize("NFC").trim().replace(/\s+/g, " "); }
  get untouched() { return !this.name && !this.files.length && !this.reading; }
  get sendable() { return this.name && this.files.length && !this.reading; }

  // Makes the pictures small, and takes them; tells of those that cannot be.
  async read(files) {
    this.reading += files.length;
    this.form.changed();
    await prepareAll(files, (file, why) => {
      this.reading -= 1;
      if (why) this.left.add([{ name: file.name, why }]);
      else this.add([file]);
      this.form.changed();
    });
  }

  add(files) {
    this.files.push(...files);
    for (const file of files) if (this.thumbs.childElementCount < SHOWN) this.show(file);
    this.form.changed();
  }

  async show(file) {
    const item = h("li");
    this.thumbs.append(item);
    const picture = await thumbnail(file), label = t("group.drop-picture", { name: file.name });
    const drop = () => {
      const next = item.nextElementSibling ?? item.previousElementSibling;
      this.files.splice(this.files.indexOf(file), 1);
      item.remove();
      (next?.querySelector("button") ?? this.input).focus();
      this.form.changed();
    };
    item.append(button("", picture, drop, { title: label, ariaLabel: label }));
  }

  camera() {
    let recording;
    this.problem.textContent = "";
    openCamera(this.zone, {
      failed: (text) => { this.problem.textContent = text; },
      closed: () => recording.stop(),
      controls: (frame) => {
        let taken = 0;
        const count = h("span", { className: "count", role: "status" }, t("camera.hint"));
        recording = shutter(async () => {
          this.add([await frame()]);
          taken += 1;
          count.textContent = t("pictures", { n: taken });
        });
        return h("div", { className: "row" }, recording.release, count);
      },
    });
  }

  update(removable) {
    const more = this.files.length > SHOWN ? t("group.shown", { n: SHOWN }) : "";
    this.count.textContent = this.reading ? t("group.reading", { n: this.reading }) : this.files.length ? [t("pictures", { n: this.files.length }), more].filter(Boolean).join(" · ") : "";
    this.remove.hidden = !removable;
  }
}
