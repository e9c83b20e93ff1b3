// One lesson: how far it is, and its result.
import * as api from "./api.js";
import { h, percent, plural, s, seconds, toast } from "./dom.js";
import { thumbnail } from "./pictures.js";

const STAGES = { "": "Getting ready", wait: "Waiting", look: "Looking at the pictures", train: "Training", check: "Checking earlier classes", saved: "Saved" };

export class LessonCard {
  constructor(number, again) {
    this.again = again;
    this.losses = [];
    this.title = h("h3");
    this.text = h("p", { className: "soft" });
    this.bar = h("progress", { max: 1 });
    this.curve = h("div", { className: "curve" });
    this.cancel = h("button", { type: "button", className: "plain", onclick: () => this.stop(number) }, "Cancel");
    this.back = h("button", { type: "button", className: "plain", hidden: true, onclick: () => this.again() }, "Back to the form");
    this.result = h("div", { className: "result" });
    this.element = h("article", { className: "lesson" },
      h("div", { className: "headline" }, this.title, this.cancel, this.back), this.bar, this.text, this.curve, this.result);
  }

  get running() { return this.state === "waiting" || this.state === "learning"; }

  async stop(number) {
    this.cancel.disabled = true;
    try { await api.cancel(number); } catch (error) { toast(error.message); }
  }

  // `items` are the pictures it was sent from this tab, [{ number, file }]; `trains`, whether a network is trained.
  show(lesson, mayReturn, items, trains) {
    const names = Object.keys(lesson.classes), many = Object.values(lesson.classes).reduce((a, b) => a + b, 0);
    const what = names.length > 3 ? plural(names.length, "class", "classes") : names.join(", ");
    const verb = { waiting: "Waiting to learn", learning: "Learning", done: "Learned", failed: "Not learned:", cancelled: "Cancelled:" }[lesson.state];
    const ended = lesson.state !== this.state && !["waiting", "learning"].includes(lesson.state);
    if (ended && this.state) toast(`${verb} ${what}`);
    this.state = lesson.state;
    this.element.className = `lesson ${lesson.state}`;
    this.title.textContent = `${verb} ${what}`;
    this.bar.setAttribute("aria-label", `${verb} ${what}`);
    this.bar.hidden = this.cancel.hidden = !this.running;
    this.back.hidden = this.running || !mayReturn;
    if (this.running) {
      // Where a network is trained, looking takes the first third of the bar and training the rest.
      const share = lesson.total ? lesson.done / lesson.total : 0, looked = trains ? 1 / 3 : 1;
      const whole = { look: share * looked, check: looked, train: (1 + 2 * share) / 3, saved: 1 }[lesson.stage];
      if (whole === undefined) this.bar.removeAttribute("value"); else this.bar.value = whole;
      if (lesson.loss !== null && lesson.done !== this.epoch) { this.losses.push(lesson.loss); this.epoch = lesson.done; }
      this.text.textContent = lesson.state === "waiting" ? `${plural(many, "picture")}; another lesson comes first` : this.progress(lesson);
      this.drawLosses();
      return;
    }
    this.curve.replaceChildren();
    this.text.textContent = [lesson.message, lesson.unreadable.length ? `${plural(lesson.unreadable.length, "picture")} could not be read` : ""].filter(Boolean).join("; ");
    if (lesson.result && ended) this.showResult(lesson.result, items);
  }

  progress(lesson) {
    if (lesson.message) return lesson.message;
    const unit = lesson.stage === "train" ? "epoch" : "picture";
    const parts = [STAGES[lesson.stage]];
    if (lesson.total && lesson.stage !== "saved") parts.push(`${unit} ${lesson.done} of ${lesson.total}`);
    if (lesson.loss !== null) parts.push(`loss ${lesson.loss.toPrecision(3)}`);
    if (lesson.seconds_left !== null) parts.push(`${seconds(lesson.seconds_left)} left`);
    return parts.join(" · ");
  }

  drawLosses() {
    if (this.losses.length < 2) return;
    const high = Math.max(...this.losses), low = Math.min(...this.losses), span = high - low || 1;
    const points = this.losses.map((loss, i) => `${(i / (this.losses.length - 1)) * 300},${2 + 36 * (1 - (loss - low) / span)}`);
    this.curve.replaceChildren(s("svg", { viewBox: "0 0 300 40", preserveAspectRatio: "none", "aria-hidden": "true" },
      s("polyline", { points: points.join(" ") })));
  }

  showResult(result, items) {
    const pictures = result.learned.reduce((sum, one) => sum + one.pictures, 0);
    const rows = [h("p", { className: "soft" }, `From ${plural(pictures, "picture")} in ${seconds(result.seconds)}. The pictures are gone.`)];
    if (result.new.pictures) rows.push(meter("New, held back", null, result.new));
    if (result.before.pictures) rows.push(meter("Earlier classes", result.before, result.after));
    if (!result.new.pictures && !result.before.pictures) rows.push(h("p", { className: "soft" }, "Too few pictures to hold any back for a check; give a class at least five."));
    const lost = result.before.right - result.after.right;
    if (lost > 0) rows.push(h("p", { className: "warning" }, `${plural(lost, "answer")} about earlier classes became wrong. Undo takes the lesson back; more pictures may help.`));
    if (result.misfits.length) rows.push(h("p", { className: "warning" }, "Look again: these may have the wrong name"), misfitList(result.misfits, items));
    this.result.replaceChildren(...rows);
  }

  lost(mayReturn) {
    this.state = "failed";
    this.element.className = "lesson failed";
    this.title.textContent = "Not finished";
    this.text.textContent = "The server was restarted. If the class is not listed below, the model is as it was before this lesson.";
    this.bar.hidden = this.cancel.hidden = true;
    this.curve.replaceChildren();
    this.back.hidden = !mayReturn;
  }
}

function misfitList(misfits, items) {
  return h("ul", { className: "misfits" }, misfits.map((one) => {
    const item = h("li", {}, h("span", {}, `${one.name}, picture ${one.picture}: looks like ${one.answer} (${percent(one.probability)})`));
    const sent = items.find((other) => other.number === one.picture);
    if (sent) thumbnail(sent.file).then((picture) => item.prepend(picture));
    return item;
  }));
}

function meter(label, before, after) {
  const line = (check, when) => h("div", { className: "meter" },
    h("span", { className: "soft" }, when),
    h("meter", { min: 0, max: check.pictures, value: check.right, ariaLabel: `${label} ${when}` }),
    h("b", {}, `${check.right} of ${check.pictures}`));
  return h("div", { className: "check" }, h("strong", {}, label), before && line(before, "before"), line(after, before ? "after" : "right"));
}
