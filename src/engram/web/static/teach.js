// Teaching: classes with a name and pictures, sent together, and the lessons they become.
import * as api from "./api.js";
import { openCamera } from "./camera.js";
import { by, h, plural } from "./dom.js";
import { LessonCard } from "./lesson.js";
import { dropZone, fromFiles, thumbnail } from "./pictures.js";

const SHOWN = 36;  // thumbnails of a class
const RECORD_EVERY = 200;  // milliseconds between two frames

class Group {
  constructor(form, name = "", files = []) {
    this.form = form;
    this.files = [];
    this.input = h("input", { value: name, maxLength: 80, placeholder: "for example: wren", autocomplete: "off", spellcheck: false, oninput: () => form.changed() });
    this.input.setAttribute("list", "known");
    this.title = h("span", { className: "soft count", role: "status" });
    this.thumbs = h("ul", { className: "thumbs" });
    this.remove = h("button", { type: "button", className: "quiet corner", onclick: () => form.drop(this) }, "Remove");
    this.problem = h("p", { className: "problem", role: "alert" });
    this.zone = dropZone({ text: "Drop pictures or a folder", take: (found) => form.take(found, this), camera: () => this.camera() });
    this.element = h("fieldset", { className: "group" },
      h("div", { className: "row name" }, h("label", {}, "Name of the class", this.input), this.title), this.remove,
      this.zone, this.problem, this.thumbs);
    this.add(files);
  }

  get name() { return this.input.value.trim().replace(/\s+/g, " "); }

  add(files) {
    this.files.push(...files);
    for (const file of files.slice(0, Math.max(0, SHOWN - this.thumbs.childElementCount))) this.show(file);
    this.form.changed();
  }

  async show(file) {
    const item = h("li");
    this.thumbs.append(item);
    const name = file.name === "camera.jpg" ? "this frame" : file.name;
    const drop = () => {
      const next = item.nextElementSibling ?? item.previousElementSibling;
      this.files.splice(this.files.indexOf(file), 1);
      item.remove();
      (next?.querySelector("button") ?? this.input).focus();
      this.form.changed();
    };
    const picture = await thumbnail(file);
    item.append(h("button", { type: "button", title: `Remove ${name}`, ariaLabel: `Remove ${name}`, onclick: drop }, picture));
  }

  camera() {
    let timer;
    openCamera(this.zone, {
      failed: (text) => { this.problem.textContent = text; },
      closed: () => clearInterval(timer),
      controls: (frame) => {
        const one = h("button", { type: "button", className: "main", onclick: async () => this.add([await frame()]) }, "Take a picture");
        const many = h("button", { type: "button", className: "plain", onclick: () => {
          if (timer) { clearInterval(timer); timer = undefined; } else timer = setInterval(async () => this.add([await frame()]), RECORD_EVERY);
          many.textContent = timer ? "Stop" : "Take many";
          many.setAttribute("aria-pressed", String(Boolean(timer)));
        } }, "Take many");
        return h("div", { className: "row" }, one, many);
      },
    });
  }

  update(removable) {
    this.title.textContent = this.files.length ? plural(this.files.length, "picture") : "";
    const more = this.files.length - this.thumbs.childElementCount;
    if (more > 0) this.title.textContent += `, ${SHOWN} shown`;
    this.remove.hidden = !removable;
  }
}

export class Teach {
  constructor() {
    this.groups = [];
    this.cards = new Map();
    this.sent = new Map();  // lesson -> what it was sent, as long as it may be needed again
    this.model = null;
    this.known = h("datalist", { id: "known" });
    document.body.append(this.known);
    by("add-group").onclick = () => this.open("").input.focus();
    by("send").onclick = () => this.send();
    by("folder").onchange = (event) => { this.take(fromFiles(event.target.files)); event.target.value = ""; };
  }

  open(name, files = []) {
    const group = new Group(this, name, files);
    this.groups.push(group);
    by("groups").append(group.element);
    this.changed();
    return group;
  }

  drop(group) {
    this.groups.splice(this.groups.indexOf(group), 1);
    group.element.remove();
    this.changed();
    by("add-group").focus();
  }

  // Pictures in folders become classes named after them; pictures alone go where they were dropped. A single folder
  // dropped on a class is its pictures.
  take(found, group) {
    const folders = new Set(found.map((one) => one.folder));
    for (const { folder, file } of found) {
      const alone = group && (folder === "" || folders.size === 1);
      let goal = alone ? group : this.groups.find((other) => other.name === folder);
      goal ??= this.groups.find((other) => !other.name && !other.files.length) ?? this.open("");
      if (!goal.name && folder) goal.input.value = folder;
      goal.add([file]);
    }
  }

  // How many classes a lesson needs: two for the first one of a method that trains a network to tell them apart.
  needed() { return this.model?.exists === false && this.model.trains ? 2 : 1; }

  changed() {
    const full = this.groups.filter((group) => group.name && group.files.length);
    const needed = this.needed();
    for (const group of this.groups) group.update(this.groups.length > needed);
    by("send").disabled = new Set(full.map((group) => group.name)).size < needed || this.sending;
    by("teach-problem").textContent = "";
  }

  show(model) {
    const first = this.model === null || this.model.exists !== model.exists;
    this.model = model;
    by("teach-intro").textContent = model.exists
      ? "Name a class and give it some pictures. A known class learns from them in addition."
      : `Start with ${this.needed() > 1 ? "at least two classes" : "one class or several"}.`;
    by("add-group").textContent = model.exists ? "Add another class" : "Add a class";
    by("send").textContent = model.exists ? "Learn" : "Learn these classes";
    this.known.replaceChildren(...model.classes.map((one) => h("option", { value: one.name })));
    if (first && this.groups.every((group) => !group.files.length && !group.name)) this.clear();
    by("teach").inert = !model.can_learn;
    if (!model.can_learn) by("teach-intro").textContent = "This model was saved slim: it answers, but cannot learn.";
    this.changed();
  }

  clear() {
    for (const group of this.groups.splice(0)) group.element.remove();
    for (let i = this.model?.exists ? 1 : 2; i > 0; i -= 1) this.open("");
  }

  async send() {
    const groups = this.groups.filter((group) => group.name && group.files.length);
    const items = groups.flatMap((group) => group.files.map((file) => ({ name: group.name, file })));
    items.forEach((item, i) => { item.number = i + 1; });  // as the server counts them
    let problem = "";
    this.sending = true;
    this.clear();  // at once: the next class can be prepared while this one is on its way
    by("send").textContent = "Sending…";
    try {
      const lessons = await api.teach(items.map((item) => item.file), items.map((item) => item.name));
      for (const lesson of lessons) {
        this.sent.set(lesson.number, items.filter((item) => item.name in lesson.classes));
        this.card(lesson);
      }
    } catch (error) {
      problem = error.message;
      this.reopen(groups.map((group) => [group.name, group.files]));
    }
    this.sending = false;
    this.show(this.model);
    by("teach-problem").textContent = problem;
  }

  card(lesson) {
    let card = this.cards.get(lesson.number);
    if (!card) {
      card = new LessonCard(lesson.number, () => this.again(lesson.number));
      this.cards.set(lesson.number, card);
      by("lessons").prepend(card.element);
    }
    const items = this.sent.get(lesson.number) ?? [];
    if (lesson.state === "done") this.sent.delete(lesson.number);
    card.show(lesson, this.sent.has(lesson.number), items, this.model?.trains);
  }

  follow(state, restarted) {
    if (restarted) {
      for (const [number, card] of this.cards) {
        if (card.running) card.lost(this.sent.has(number)); else card.element.remove();
        this.cards.delete(number);
        const items = this.sent.get(number);
        if (items) card.again = () => this.bring(items, card);
        this.sent.delete(number);
      }
    }
    for (const lesson of state.lessons) this.card(lesson);
  }

  again(number) {
    const items = this.sent.get(number);
    this.sent.delete(number);
    this.bring(items, this.cards.get(number));
    this.cards.delete(number);
  }

  bring(items, card) {
    card.element.remove();
    const names = [...new Set(items.map((item) => item.name))];
    this.reopen(names.map((name) => [name, items.filter((item) => item.name === name).map((item) => item.file)]));
    by("send").focus();
  }

  // Put classes back into the form, in the place of those that are still empty.
  reopen(classes) {
    for (const group of this.groups.filter((one) => !one.name && !one.files.length)) this.drop(group);
    for (const [name, files] of classes) this.open(name, files);
  }
}
