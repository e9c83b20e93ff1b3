// The classes as cards; rename, forget, undo.
import * as api from "./api.js";
import { ask, by, day, h, plural, toast } from "./dom.js";
import { figure } from "./figure.js";

export function describe(change) {
  const names = Object.keys(change.pictures).join(", ");
  return { base: `learning ${names}`, learn: `learning ${names}`, more: `learning more of ${names}`, forget: `forgetting ${names}`,
    rename: `renaming ${names} to ${change.new_name}` }[change.what];
}

export class Classes {
  constructor(changed) {
    this.changed = changed;
    by("undo").onclick = () => this.undo();
  }

  show(model, busy) {
    this.model = model;
    by("figure-note").hidden = model.map_shows === null;
    by("cards").replaceChildren(...model.classes.map((one) => this.card(one)));
    const last = model.history.at(-1);
    by("undo").hidden = !model.can_undo || !last;
    if (last) by("undo").textContent = `Undo ${describe(last)}`;
    this.setBusy(busy);
  }

  setBusy(busy) {
    for (const button of by("classes").querySelectorAll("button")) button.disabled = busy;
  }

  card(one) {
    const when = one.increment === 0 ? "in the base" : one.increment ? `in increment ${one.increment}` : "";
    const lines = [one.pictures !== null && plural(one.pictures, "picture"), day(one.learned), when].filter(Boolean);
    return h("li", { className: "card" }, one.strands.length > 0 && figure(one),
      h("h3", {}, one.name),
      h("p", { className: "soft" }, lines.flatMap((line, i) => (i ? [h("br"), line] : [line]))),
      h("div", { className: "row" },
        h("button", { type: "button", className: "quiet", ariaLabel: `Rename ${one.name}`, onclick: () => this.rename(one) }, "Rename"),
        h("button", { type: "button", className: "quiet", ariaLabel: `Forget ${one.name}`, onclick: () => this.forget(one) }, "Forget")));
  }

  async make(change, said) {
    try {
      this.changed(await change());
      toast(said, { label: "Undo", run: () => this.undo() });
    } catch (error) {
      toast(error.message);
    }
    by("classes-title").focus();
  }

  async rename(one) {
    const name = await ask({ title: `Rename ${one.name}`, text: "Everything else about the class stays.", yes: "Rename", value: one.name });
    if (name && name !== one.name) await this.make(() => api.rename(one.name, name), `${one.name} is called ${name} now`);
  }

  async forget(one) {
    const sure = await ask({ title: `Forget ${one.name}?`, yes: "Forget",
      text: "Its name goes, and all that is kept of this class alone. What the network has learned from it stays in the weights. You can undo this." });
    if (sure) await this.make(() => api.forget(one.name), `Forgot ${one.name}`);
  }

  async undo() {
    const last = this.model.history.at(-1);
    try {
      this.changed(await api.undo(this.model.version));
      toast(`Undone: ${describe(last)}`);
    } catch (error) {
      toast(error.message);
    }
    by("classes-title").focus();
  }
}
