// The page: follows the server, and shows what it says. All state that matters is the server's.
import * as api from "./api.js";
import { drawCharts } from "./charts.js";
import { Classes } from "./classes.js";
import { by, percent, plural, toast } from "./dom.js";
import { Teach } from "./teach.js";
import { Try } from "./try.js";

let server = null, stamp = null, model = null, busy = false;
const teach = new Teach(), classes = new Classes(show);
new Try();

function show(present) {
  model = present;
  document.title = `${model.name} · engram`;
  by("model-name").textContent = model.exists ? `${model.name} · ${plural(model.classes.length, "class", "classes")}` : `${model.name} · nothing learned yet`;
  by("welcome").hidden = model.exists;
  for (const id of ["try", "classes", "look", "take", "nav"]) by(id).hidden = !model.exists;
  by("onnx").hidden = !model.can_export;
  by("unknown-note").textContent = model.unknown
    ? `What looks like nothing that was taught is called unknown, and so are about ${percent(model.unknown.share)} of pictures of known classes.`
    : model.classes.length === 1 ? "There is only one class, so every answer is that one; teach another." : "";
  teach.show(model);
  classes.show(model, busy);
  if (model.exists) drawCharts(model);
}

async function tell(state) {
  const restarted = server !== null && server !== state.server;
  server = state.server;
  teach.follow(state, restarted);
  const learning = state.lessons.some((lesson) => lesson.state === "waiting" || lesson.state === "learning");
  const changed = stamp !== state.model || model === null;
  if (changed) {
    stamp = state.model;
    busy = learning;
    try { show(await api.model()); } catch (error) { stamp = null; toast(error.message); }
  } else if (learning !== busy) {
    busy = learning;
    classes.setBusy(busy);
  }
}

// A drop beside the fields must not make the browser leave the page.
for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault());

api.follow(tell, (lost) => { by("lost").hidden = !lost; });
