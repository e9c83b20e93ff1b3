// Adding what another model knows: shown first, then done.
import * as api from "./api.js";
import { by } from "./dom.js";
import { ask, toast } from "./notes.js";
import { named, t } from "./text.js";

// `make` makes a change and offers to undo it.
export function offerMerge(make) {
  by("merge").onchange = async (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (!file) return;
    try {
      const plan = await api.merge(file, false);
      const sure = await ask({ title: t("merge.title"), text: describe(plan), yes: t("merge.yes"), no: t("merge.no") });
      if (sure) await make(async () => (await api.merge(file, true)).model, t("merge.done"));
    } catch (error) {
      toast(error.message);
    }
  };
}

function describe({ added, joined, twice }) {
  const parts = [["merge.added", added], ["merge.joined", joined], ["merge.twice", twice]];
  const names = (found) => (Array.isArray(found) ? found : Object.keys(found));
  return parts.filter(([, found]) => names(found).length).map(([key, found]) => t(key, { names: named(names(found)) })).join(" ") || t("merge.nothing");
}
