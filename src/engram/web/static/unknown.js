// What is called unknown, and how readily.
import * as api from "./api.js";
import { by, h } from "./dom.js";
import { toast } from "./notes.js";
import { percent, t } from "./text.js";

const SHARES = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3];

export class Unknown {
  constructor(changed) {
    by("unknown-share").onchange = async (event) => {
      event.target.disabled = true;
      try {
        const model = await api.setUnknown(Number(event.target.value));
        changed(model);
        toast(t("unknown.done", { share: percent(model.unknown.share) }));
      } catch (error) {
        toast(error.message);
        this.show(this.model);
      }
      event.target.disabled = false;
      event.target.focus();
    };
  }

  show(model) {
    this.model = model;
    const rule = model.unknown;
    by("unknown-note").textContent = rule
      ? t("unknown.text")
      : model.classes.length === 1 ? t("unknown.one-class") : model.exists ? t("unknown.none") : "";
    by("unknown-field").hidden = !rule;
    if (!rule) return;
    const shares = [...new Set([...SHARES, rule.share])].sort((a, b) => a - b);
    by("unknown-share").replaceChildren(...shares.map((share) => h("option", { value: share, selected: share === rule.share }, t("unknown.share", { share: percent(share) }))));
  }
}
