// The page: follows the server, and shows what it says. All state that matters is the server's.
import { Among } from "./among.js";
import * as api from "./api.js";
import { drawCharts } from "./charts.js";
import { Classes } from "./classes.js";
import { offerConfusion } from "./confusion.js";
import { by } from "./dom.js";
import { follow } from "./follow.js";
import { takePasted } from "./intake.js";
import { Lessons } from "./lessons.js";
import { offerMerge } from "./merge.js";
import { toast } from "./notes.js";
import { Take } from "./take.js";
import { Teach } from "./teach.js";
import { loadLanguage, t } from "./text.js";
import { Try } from "./try.js";
import { Unknown } from "./unknown.js";

await loadLanguage();

let server = null, stamp = null, model = null, busy = false, asked = 0;
const lessons = new Lessons((items) => teach.reopen(items));
const teach = new Teach(lessons), take = new Take(), unknown = new Unknown(show);
const classes = new Classes({ changed: show, addTo: (name) => teach.addTo(name) });
const among = new Among(), trial = new Try((items) => lessons.send(items), among);
offerConfusion();
offerMerge((change, said) => classes.make(change, said));
by("damaged-undo").onclick = () => api.undo(model.version).then(show, (error) => toast(error.message));
takePasted(() => [
  { element: by("try"), take: (files) => trial.take(files) },
  ...teach.groups.map((group) => ({ element: group.element, take: (files) => teach.take(files, group) })),
]);

function show(present) {
  model = present;
  const readable = model.problem === null, usable = model.exists && readable;
  document.title = `${model.name} · engram`;
  by("model-name").textContent = usable ? t("model.classes", { name: model.name, n: model.classes.length }) : model.name;
  by("welcome").hidden = model.exists;
  by("damaged").hidden = readable;
  by("damaged-why").textContent = model.problem ?? "";
  by("damaged-undo").hidden = !model.can_undo;
  by("teach").hidden = !readable;
  for (const id of ["classes", "overview", "take", "nav"]) by(id).hidden = !usable;
  by("try").hidden = !usable || !(model.classes.length || model.built_in);
  if (!readable) return;
  teach.show(model);
  lessons.show(model);
  unknown.show(model);
  among.show(model);
  if (!usable) return;
  classes.show(model, busy);
  drawCharts(model);
  take.show(model);
}

async function tell(state) {
  const restarted = server !== null && server !== state.server;
  server = state.server;
  lessons.follow(state, restarted);
  const learning = state.lessons.some((lesson) => lesson.state === "waiting" || lesson.state === "learning");
  const changed = stamp !== state.model || restarted;
  stamp = state.model;
  if (learning !== busy) {
    busy = learning;
    if (model?.exists) classes.setBusy(busy);
  }
  if (!changed) return;
  asked += 1;
  const mine = asked;  // an answer that came late is not shown over a newer one
  try {
    const present = await api.model();
    if (mine === asked) show(present);
  } catch (error) {
    stamp = null;
    toast(error.message);
  }
}

// A drop beside the fields must not make the browser leave the page.
for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault());

follow(tell, (lost) => { by("lost").hidden = !lost; });
