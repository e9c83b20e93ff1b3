// One class: how it is doing, what it is taken for, and what can be done with it.
import { bar, button, h } from "./dom.js";
import { day, moment, percent, t } from "./text.js";

const ALIKE = 3;  // nearest classes shown

export function card(one, { add, rename, forget, undo }) {
  const state = one.health?.state ?? "untold";
  const facts = [one.pictures !== null && t("pictures", { n: one.pictures }), one.learned && day(one.learned)].filter(Boolean).join(" · ");
  const swatch = h("span", { className: "swatch" });
  const action = (className, key, run) => button(className, t(key), run, { ariaLabel: t(`${key}.what`, { name: one.name }) });
  const element = h("li", { className: `card ${state}` },
    h("h3", {}, swatch, h("span", { dir: "auto" }, one.name)),
    h("p", { className: "soft", title: one.learned ? moment(one.learned) : "" }, facts),
    one.health && health(one.health), state === "lost" && lost(add, undo, action), alike(one),
    h("div", { className: "row" }, state !== "lost" && action("quiet", "add", add), action("quiet changes", "rename", rename), action("quiet changes", "forget", forget)));
  element.style.setProperty("--hue", one.hue);
  return element;
}

function health({ share, pictures, state }) {
  return h("div", { className: "health" },
    h("p", {}, h("b", {}, t("health.right", { share: percent(share) })), state !== "good" && h("span", { className: `mark ${state}` }, t(`health.${state}`))),
    bar(share, state),
    h("small", { className: "soft" }, t("health.left-out", { n: pictures })));
}

function lost(add, undo, action) {
  return h("div", { className: "remedy" }, h("p", {}, t("lost.text")),
    h("div", { className: "row" }, action("main", "add", add), undo && button("plain changes", t("lost.undo"), undo)));
}

// What it is taken for, where that is known; otherwise the classes that look most like it.
function alike(one) {
  const taken = one.health?.taken_for ?? [];
  const rows = taken.length ? taken.map(({ name, share }) => [name, share, percent(share)])
    : one.neighbours.slice(0, ALIKE).map(({ name, similarity }) => [name, (1 + similarity) / 2, ""]);  // a cosine says nothing to a person
  if (!rows.length) return null;
  return h("div", { className: "alike" }, h("h4", {}, t(taken.length ? "card.taken" : "card.alike")),
    h("ul", { className: "bars" }, rows.map(([name, share, value]) => h("li", {},
      h("span", { className: "label", dir: "auto", title: name }, name), bar(share, taken.length ? "wrong" : ""), h("span", { className: "value" }, value)))));
}
