// Lessons: sending one, and following all that the server has.
import * as api from "./api.js";
import { by } from "./dom.js";
import { LessonCard } from "./lesson.js";
import { ask } from "./notes.js";
import { t } from "./text.js";

export class Lessons {
  // `reopen` puts pictures back into the form.
  constructor(reopen) {
    this.reopen = reopen;
    this.sending = 0;
    this.cards = new Map();  // by number
    this.lost = [];  // cards of lessons that ran when the server was restarted
    this.latest = [];  // as the server told them last
    this.model = null;
  }

  // Sends pictures of any number of classes as one lesson, [{ name, file }]; resolves to what went wrong ("" if
  // the owner thought better of it), or null.
  async send(items) {
    const stop = new AbortController(), card = this.open(items);
    card.cancel.onclick = () => stop.abort();
    const progress = (sent, total) => card.showSending(sent, total);
    this.sending += 1;
    progress(0, 0);
    card.focus();
    try {
      const lesson = await this.agree(items, { progress, stop: stop.signal });
      this.cards.get(lesson.number)?.element.remove();  // the stream was quicker
      this.cards.set(lesson.number, card);
      card.show(this.latest.find((other) => other.number === lesson.number) ?? lesson, this.model);
      return null;
    } catch (error) {
      card.element.remove();
      return error.message;
    } finally {
      this.sending -= 1;
      this.follow({ lessons: this.latest }, false);
    }
  }

  // Sends; where a name is nearly that of a class, asks whether it is the same, and sends again.
  async agree(items, options) {
    try {
      return await api.teach(items, options);
    } catch (error) {
      if (!error.similar) throw error;
      let distinct = false;
      for (const [name, known] of Object.entries(error.similar)) {
        const answer = await ask({ title: t("similar.title", { name, known }), text: t("similar.text"),
          yes: t("similar.same", { known }), other: t("similar.distinct"), no: t("dialog.back") });
        if (!answer) throw new Error("");  // back to the form, with nothing to say
        if (answer === "other") distinct = true;
        else for (const item of items) if (item.name === name) item.name = known;
      }
      return api.teach(items, { ...options, distinct });
    }
  }

  open(items) {
    const card = new LessonCard(items, () => { card.element.remove(); this.reopen(card.items); });
    by("lessons").prepend(card.element);
    return card;
  }

  follow(state, restarted) {
    if (restarted) {
      for (const card of this.cards.values()) {
        if (card.running) this.lost.push(card); else card.element.remove();
      }
      this.cards.clear();
    }
    this.latest = state.lessons;
    for (const lesson of state.lessons) {
      const card = this.cards.get(lesson.number) ?? (this.sending ? null : this.open([]));
      if (!card) continue;  // it may be the one being sent; its number comes with the answer
      this.cards.set(lesson.number, card);
      card.show(lesson, this.model);
    }
  }

  show(model) {
    this.model = model;
    for (const card of this.lost.splice(0)) card.showLost(model);
  }
}
