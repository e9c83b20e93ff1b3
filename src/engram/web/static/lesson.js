// One lesson: how far it is, and its result.
import * as api from "./api.js";
import { button, by, h, s } from "./dom.js";
import { toast } from "./notes.js";
import { thumbnail } from "./shrink.js";
import { bytes, named, number, percent, seconds, t } from "./text.js";

export class LessonCard {
  // `items` are the pictures it was sent from this tab, [{ name, file }], in the order in which the server counts them.
  constructor(items, again) {
    this.items = items;
    this.state = "sending";
    this.losses = [];
    this.title = h("h3", { tabIndex: -1 });
    this.text = h("p", { className: "soft", dir: "auto" });
    this.bar = h("progress", { max: 1 });
    this.curve = h("div", { className: "curve" });
    this.cancel = button("plain", t("lesson.cancel"));
    this.back = button("plain", t("lesson.back"), again, { hidden: true });
    this.result = h("div", { className: "result" });
    this.element = h("article", { className: "lesson" },
      h("div", { className: "headline" }, this.title, this.cancel, this.back), this.bar, this.text, this.curve, this.result);
  }

  get running() { return ["sending", "waiting", "learning"].includes(this.state); }

  focus() { this.title.focus(); }

  name(state, names) {
    this.title.textContent = t(`lesson.${state}`, { classes: named(names) });
    this.bar.ariaLabel = this.title.textContent;
    this.element.className = `lesson ${state}`;
    this.state = state;
    this.bar.hidden = this.cancel.hidden = !this.running;
    this.back.hidden = this.running || state === "done" || !this.items.length;
  }

  showSending(sent, total) {
    this.name("sending", [...new Set(this.items.map((item) => item.name))]);
    if (total) this.bar.value = sent / total;
    this.text.textContent = total ? t("lesson.sent", { sent: bytes(sent), total: bytes(total) }) : t("pictures", { n: this.items.length });
  }

  show(lesson, model) {
    const before = this.state, news = before !== "sending" || this.items.length > 0, mine = this.element.contains(document.activeElement) || [document.body, by("send")].includes(document.activeElement);
    this.classes = Object.keys(lesson.classes);
    this.changes ??= model?.history.length ?? 0;
    this.name(lesson.state, this.classes);
    this.cancel.onclick = () => this.stop(lesson.number);
    if (this.running) {
      this.showProgress(lesson, model);
      return;
    }
    if (before === lesson.state) return;
    this.curve.replaceChildren();
    this.text.textContent = lesson.message;
    this.result.replaceChildren(...this.unreadable(lesson), ...(lesson.result ? this.outcome(lesson.result) : []));
    if (lesson.state === "done") this.items = [];
    if (!news) return;  // it ended before this tab was opened
    toast(this.title.textContent);
    if (mine) this.focus();
  }

  async stop(number) {
    this.cancel.disabled = true;
    try { await api.cancel(number); } catch (error) { toast(error.message); }
  }

  showProgress(lesson, model) {
    // Where a network is trained, looking takes the first third of the bar and training the rest.
    const share = lesson.total ? lesson.done / lesson.total : 0, looked = model?.trains ? 1 / 3 : 1;
    const whole = { look: share * looked, train: (1 + 2 * share) / 3, saved: 1 }[lesson.stage];
    if (whole === undefined) this.bar.removeAttribute("value"); else this.bar.value = whole;
    if (lesson.loss !== null && lesson.done !== this.epoch) { this.losses.push(lesson.loss); this.epoch = lesson.done; }
    this.text.textContent = lesson.state === "waiting" ? t("lesson.queued", { n: Object.values(lesson.classes).reduce((a, b) => a + b, 0) }) : this.progress(lesson);
    this.drawLosses();
  }

  progress(lesson) {
    if (lesson.message) return lesson.message;
    const parts = [t(`stage.${lesson.stage || "ready"}`), this.classes.length > 1 && lesson.current];
    if (lesson.total && lesson.stage !== "saved") parts.push(t(lesson.stage === "train" ? "stage.epoch" : "stage.picture", { done: lesson.done, total: lesson.total }));
    if (lesson.loss !== null) parts.push(t("stage.loss", { loss: number(lesson.loss, { maximumSignificantDigits: 3 }) }));
    if (lesson.seconds_left !== null) parts.push(t("stage.left", { time: seconds(lesson.seconds_left) }));
    return parts.filter(Boolean).join(" · ");
  }

  drawLosses() {
    if (this.losses.length < 2) return;
    const high = Math.max(...this.losses), low = Math.min(...this.losses), span = high - low || 1;
    const points = this.losses.map((loss, i) => `${(i / (this.losses.length - 1)) * 300},${2 + 36 * (1 - (loss - low) / span)}`);
    this.curve.replaceChildren(s("svg", { viewBox: "0 0 300 40", preserveAspectRatio: "none", "aria-hidden": "true" },
      s("polyline", { points: points.join(" ") })));
  }

  unreadable(lesson) {
    if (!lesson.unreadable.length) return [];
    return [h("p", { className: "warning" }, t("lesson.unread", { n: lesson.unreadable.length })), h("ul", { className: "plain-list" },
      lesson.unreadable.map(({ picture, reason }) => h("li", {}, t("left.line", { names: this.nameOf(picture), why: reason }))))];
  }

  nameOf(picture) { return this.items[picture - 1]?.file.name ?? t("lesson.picture", { n: picture }); }

  outcome(result) {
    const pictures = result.learned.reduce((sum, one) => sum + one.pictures, 0);
    return [h("p", { className: "soft" }, t("lesson.from", { n: pictures, time: seconds(result.seconds) })),
      result.misfits.length > 0 && h("p", { className: "warning" }, t("lesson.misfits")),
      result.misfits.length > 0 && this.misfits(result.misfits)].filter(Boolean);
  }

  misfits(misfits) {
    return h("ul", { className: "misfits" }, misfits.map((one) => {
      const values = { name: one.name, picture: this.nameOf(one.picture), answer: one.answer, share: percent(one.probability) };
      const item = h("li", {}, h("span", {}, t("lesson.misfit", values)));
      const sent = this.items[one.picture - 1];
      if (sent) thumbnail(sent.file).then((picture) => item.prepend(picture));
      return item;
    }));
  }

  // The server was restarted meanwhile; a lesson is learned as a whole or not at all, and the history tells.
  showLost(model) {
    const names = this.classes ?? [...new Set(this.items.map((item) => item.name))];
    const learned = model.history.slice(this.changes).some((change) => names.every((name) => name in change.pictures));
    this.name(learned ? "done" : "lost", names);
    this.text.textContent = t(learned ? "lesson.lost-learned" : "lesson.lost-text");
    this.curve.replaceChildren();
  }
}
