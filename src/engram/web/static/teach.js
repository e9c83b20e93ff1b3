// Teaching: the form with classes and their pictures. What was sent is the business of lessons.js.
import { by, h } from "./dom.js";
import { Group } from "./group.js";
import { fromFiles, LeftOut, sort } from "./intake.js";
import { t } from "./text.js";

export class Teach {
  constructor(lessons) {
    this.lessons = lessons;
    this.groups = [];
    this.model = null;
    this.known = h("datalist", { id: "known" });
    this.left = new LeftOut();
    by("teach-left").append(this.left.element);
    document.body.append(this.known);
    by("add-group").onclick = () => this.open("").input.focus();
    by("send").onclick = () => this.send();
    by("folder").onchange = (event) => { this.take(fromFiles(event.target.files)); event.target.value = ""; };
    // Pictures that were not sent are in this tab only.
    window.addEventListener("beforeunload", (event) => {
      if (this.lessons.sending || this.groups.some((group) => group.files.length || group.reading)) event.preventDefault();
    });
  }

  open(name, files = []) {
    const group = new Group(this, name);
    this.groups.push(group);
    by("groups").append(group.element);
    group.add(files);
    return group;
  }

  // A place for more pictures of a class, in the form's empty class if there is one.
  addTo(name) {
    const group = this.groups.find((one) => one.name === name) ?? this.groups.find((one) => one.untouched) ?? this.open("");
    group.input.value = name;
    this.changed();
    group.element.scrollIntoView({ block: "center" });
    group.zone.querySelector("input").focus();
  }

  drop(group) {
    this.groups.splice(this.groups.indexOf(group), 1);
    group.element.remove();
    this.changed();
    by("add-group").focus();
  }

  // Pictures in folders become classes named after them; pictures alone go where they were dropped. A single folder
  // dropped on a class is its pictures.
  take(files, group) {
    const { found, left } = sort(files);
    const folders = new Set(found.map((one) => one.folder)), goals = new Map();
    for (const { folder, file } of found) {
      const alone = group && (folder === "" || folders.size === 1);
      let goal = alone ? group : this.groups.find((other) => other.name === folder);
      goal ??= this.groups.find((other) => !other.name && !other.files.length && !goals.has(other)) ?? this.open("");
      if (!goal.name && folder) goal.input.value = folder;
      goals.set(goal, [...(goals.get(goal) ?? []), file]);
    }
    for (const [goal, pictures] of goals) goal.read(pictures);
    (group?.left ?? this.left).add(left);
  }

  // How many classes a lesson needs: two for the first one of a method that trains a network to tell them apart.
  needed() { return this.model?.exists === false && this.model.trains ? 2 : 1; }

  // What is missing before it can learn: [why, where].
  missing() {
    const begun = this.groups.filter((group) => !group.untouched), first = this.groups[0]?.input;
    for (const group of begun) {
      if (group.reading) return [t("send.reading"), group.input];
      if (!group.name) return [t("send.unnamed"), group.input];
      if (!group.files.length) return [t("send.empty", { name: group.name }), group.zone.querySelector("input")];
    }
    const named = new Set(begun.map((group) => group.name)).size;
    if (!named) return [t(this.needed() > 1 ? "send.nothing-two" : "send.nothing"), first];
    if (named < this.needed()) return [t("send.another"), this.groups.find((group) => group.untouched)?.input ?? by("add-group")];
    return null;
  }

  changed() {
    const missing = this.model ? this.missing() : ["", null];
    for (const group of this.groups) group.update(this.groups.length > this.needed());
    by("send").ariaDisabled = String(Boolean(missing));
    by("send-why").textContent = missing ? missing[0] : "";
    by("teach-problem").textContent = "";
  }

  // Enter after the name: learn if all is there, or go to what is missing.
  enter(group) {
    if (this.missing() && group.files.length === 0 && group.name) group.zone.querySelector("input").focus();
    else this.send();
  }

  show(model) {
    const first = this.model === null || this.model.exists !== model.exists;
    this.model = model;
    by("teach-intro").textContent = t(!model.can_learn ? "teach.slim" : model.exists ? "teach.intro" : this.needed() > 1 ? "teach.start-two" : "teach.start");
    by("teach-form").hidden = !model.can_learn;
    by("add-group").textContent = t(model.exists ? "teach.add-another" : "teach.add");
    by("send").textContent = t(model.exists ? "teach.learn" : "teach.learn-these");
    this.known.replaceChildren(...model.classes.map((one) => h("option", { value: one.name })));
    if (first && this.groups.every((group) => group.untouched)) this.clear();
    this.changed();
  }

  clear() {
    for (const group of this.groups.splice(0)) group.element.remove();
    for (let i = this.model.exists ? 1 : 2; i > 0; i -= 1) this.open("");
    this.left.clear();
  }

  async send() {
    const missing = this.missing();
    if (missing) { missing[1]?.focus(); return; }
    const items = this.groups.filter((group) => group.sendable).flatMap((group) => group.files.map((file) => ({ name: group.name, file })));
    this.clear();  // at once: the next class can be prepared while this one is on its way
    const problem = await this.lessons.send(items);
    if (problem === null) return;
    this.reopen(items);
    by("teach-problem").textContent = problem;
  }

  // Puts classes back into the form, in the place of those that are still empty.
  reopen(items) {
    for (const group of this.groups.filter((one) => one.untouched)) this.drop(group);
    for (const [name, each] of Map.groupBy(items, (item) => item.name)) this.open(name, each.map((item) => item.file));
    by("send").focus();
  }
}
