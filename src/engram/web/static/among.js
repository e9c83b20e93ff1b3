// Only these answers: the classes that an answer is chosen among; none chosen means all of them.
import { button, by, h } from "./dom.js";
import { t } from "./text.js";

const FEWEST = 3;  // classes from which on there is something to choose

export class Among {
  constructor() {
    this.names = [];
    by("among-add").onclick = () => this.add();
    by("among-name").onkeydown = (event) => { if (event.key === "Enter" && !event.isComposing) this.add(); };
    by("among-clear").onclick = () => { this.choose([]); by("among-name").focus(); };
  }

  show(model) {
    this.known = model.classes.map((one) => one.name);
    by("among").hidden = this.known.length < FEWEST;
    this.choose(by("among").hidden ? [] : this.names.filter((name) => this.known.includes(name)));
  }

  add() {
    const wanted = by("among-name").value.trim();
    if (!wanted) { by("among-name").focus(); return; }
    const same = (name) => name.toLocaleLowerCase() === wanted.toLocaleLowerCase();
    const name = this.known.includes(wanted) ? wanted : this.known.find(same);
    by("among-problem").textContent = name === undefined ? t("among.stranger", { name: wanted }) : "";
    if (name !== undefined) {
      by("among-name").value = "";
      this.choose([...new Set([...this.names, name])]);
    }
    by("among-name").focus();
  }

  choose(names) {
    this.names = names;
    by("among-note").textContent = names.length ? t("among.some", { n: names.length }) : t("among.all");
    by("among-clear").hidden = !names.length;
    by("among-names").hidden = !names.length;
    by("among-names").replaceChildren(...names.map((name) => h("li", {}, button("plain chip", name, () => {
      this.choose(this.names.filter((one) => one !== name));
      by("among-name").focus();
    }, { ariaLabel: t("among.remove", { name }), dir: "auto" }))));
  }
}
