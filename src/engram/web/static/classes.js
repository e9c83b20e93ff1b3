// The classes as cards; rename, forget, undo, redo.
import * as api from "./api.js";
import { by } from "./dom.js";
import { card } from "./card.js";
import { ask, toast } from "./notes.js";
import { named, t } from "./text.js";

const SEARCHABLE = 20;  // classes from which on there is a search
const SHOWN = 24;  // cards before "show all"
const STALE = 409;

function describe(change) {
  return t(`change.${change.what}`, { names: named(Object.keys(change.pictures)), name: change.new_name ?? "" });
}

export class Classes {
  // `changed` shows another model, `addTo` opens the form for more pictures of a class.
  constructor({ changed, addTo }) {
    Object.assign(this, { changed, addTo });
    this.all = false;
    by("undo").onclick = () => this.back(this.model.version, this.model.history.at(-1));
    by("redo").onclick = () => this.make(() => api.redo(this.model.version), t("redo.done"));
    by("search").oninput = () => this.fill();
    by("show-all").onclick = () => { this.all = true; this.fill(); by("cards").children[SHOWN].querySelector("button").focus(); };
  }

  show(model, busy) {
    this.model = model;
    this.busy = busy;
    const last = model.history.at(-1);
    by("undo").hidden = !model.can_undo || !last;
    by("redo").hidden = !model.can_redo;
    if (last) by("undo").textContent = t("undo.what", { change: describe(last) });
    by("no-classes").hidden = model.classes.length > 0 || Boolean(model.built_in);
    by("built-in").hidden = !model.built_in;
    if (model.built_in) by("built-in").textContent = t("classes.built-in", { n: model.built_in.classes, licence: model.built_in.licence });
    by("search-field").hidden = model.classes.length < SEARCHABLE;
    if (by("search-field").hidden) by("search").value = "";
    this.fill();
  }

  fill() {
    const wanted = by("search").value.trim().toLocaleLowerCase();
    const lostFirst = this.model.classes.toSorted((a, b) => (b.health?.state === "lost") - (a.health?.state === "lost"));
    const found = lostFirst.filter((one) => one.name.toLocaleLowerCase().includes(wanted));
    const shown = this.all ? found : found.slice(0, SHOWN);
    by("cards").replaceChildren(...shown.map((one) => card(one, {
      add: () => this.addTo(one.name), rename: () => this.rename(one), forget: () => this.forget(one),
      undo: this.model.can_undo ? () => by("undo").click() : null,
    })));
    by("show-all").hidden = shown.length === found.length;
    by("show-all").textContent = t("classes.show-all", { n: found.length });
    by("found").textContent = wanted ? t("classes.found", { n: found.length }) : "";
    this.setBusy(this.busy);
  }

  // While something is being learned, classes cannot be changed.
  setBusy(busy) {
    this.busy = busy;
    by("busy-note").hidden = !busy || !this.model.classes.length;
    for (const one of by("classes").querySelectorAll(".changes")) one.disabled = busy;
  }

  async make(change, said) {
    try {
      const model = await change();
      const made = model.history.at(-1);
      this.changed(model);
      toast(said, { label: t("undo"), run: () => this.back(model.version, made) });
    } catch (error) {
      toast(error.message);
    }
    by("classes-title").focus();
  }

  async rename(one) {
    const name = await ask({ title: t("rename.title", { name: one.name }), text: t("rename.text"), yes: t("rename"), no: t("dialog.keep"), value: one.name });
    if (name && name !== one.name) await this.make(() => api.rename(one.name, name), t("rename.done", { name: one.name, to: name }));
  }

  async forget(one) {
    const sure = await ask({ title: t("forget.title", { name: one.name }), text: t("forget.text"), yes: t("forget"), no: t("dialog.keep") });
    if (sure) await this.make(() => api.forget(one.name), t("forget.done", { name: one.name }));
  }

  // Takes back the change that made this version, if it is still the newest.
  async back(version, change) {
    try {
      this.changed(await api.undo(version));
      toast(t("undo.done", { change: describe(change) }));
    } catch (error) {
      toast(error.status === STALE && version !== this.model.version ? t("undo.stale", { change: describe(change) }) : error.message);
    }
    by("classes-title").focus();
  }
}
