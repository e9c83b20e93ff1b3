// The table of what is taken for what, in a dialog of its own.
import * as api from "./api.js";
import { by, h } from "./dom.js";
import { toast } from "./notes.js";
import { percent, t } from "./text.js";

const MOST = 40;  // classes that a table can show and still be read

export function offerConfusion() {
  by("confusion-open").onclick = async () => {
    try { draw(await api.confusion()); } catch (error) { toast(error.message); return; }
    by("confusion").showModal();
    by("confusion-table").focus();
  };
  by("confusion-close").onclick = () => by("confusion").close();
}

// Rows are what a picture shows, columns what was answered. Of many classes, those with the most mistakes are shown.
function draw({ rows }) {
  const mistakes = new Map(rows.map((row) => [row.name, 0]));
  for (const row of rows)
    for (const [answer, share] of Object.entries(row.answers))
      if (answer !== row.name) for (const name of [row.name, answer]) mistakes.set(name, (mistakes.get(name) ?? 0) + share);
  const worst = new Set([...mistakes].sort((a, b) => b[1] - a[1]).slice(0, MOST).map(([name]) => name));
  const shown = rows.filter((row) => worst.has(row.name));
  const columns = [...new Set([...shown.map((row) => row.name), ...shown.flatMap((row) => Object.keys(row.answers))])].filter((name) => worst.has(name));
  const pictures = rows.reduce((sum, row) => sum + row.pictures, 0);
  by("confusion-note").textContent = [t("basis.left-out", { n: pictures }),
    rows.length > shown.length ? t("confusion.most", { n: shown.length, of: rows.length }) : "", t("confusion.read")].filter(Boolean).join(" ");
  by("confusion-table").replaceChildren(h("table", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col", className: "corner-cell" }, t("confusion.corner")),
      columns.map((name) => h("th", { scope: "col" }, h("span", { dir: "auto", title: name }, nameOf(name)))))),
    h("tbody", {}, shown.map((row) => h("tr", {}, h("th", { scope: "row", dir: "auto", title: row.name }, row.name), columns.map((name) => cell(row, name)))))));
}

const nameOf = (name) => (name === "unknown" ? t("try.unknown") : name);

function cell(row, name) {
  const share = row.answers[name] ?? 0;
  const element = h("td", { className: !share ? "none" : name === row.name ? "right" : "wrong", title: t("confusion.cell", { name: row.name, answer: nameOf(name), share: percent(share) }) },
    share ? percent(share) : "·");
  element.style.setProperty("--share", share);
  return element;
}
