// Short messages, and the page's one dialog for questions.
import { button, by, h } from "./dom.js";

// With `action`, something can be done about it for a while.
export function toast(text, action) {
  const note = h("div", { className: "toast" }, h("span", { dir: "auto" }, text));
  if (action) note.append(button("plain", action.label, () => { note.remove(); action.run(); }));
  by("toasts").append(note);
  setTimeout(() => note.remove(), action ? 15000 : 6000);
}

// Resolves to "yes", "other" or "". With `value` there is a name to be typed, and that is the answer instead of "yes".
export function ask({ title, text, yes, no, other, value }) {
  const dialog = by("dialog"), input = by("dialog-input");
  by("dialog-title").textContent = title;
  by("dialog-text").textContent = text;
  by("dialog-yes").textContent = yes;
  by("dialog-no").textContent = no;
  by("dialog-other").textContent = other ?? "";
  by("dialog-other").hidden = !other;
  by("dialog-field").hidden = value === undefined;
  input.value = value ?? "";
  input.required = value !== undefined;
  for (const [id, answer] of [["dialog-no", ""], ["dialog-other", "other"]]) by(id).onclick = () => dialog.close(answer);
  dialog.returnValue = "";
  dialog.showModal();
  if (value !== undefined) input.select();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      const answer = dialog.returnValue;
      resolve(answer === "yes" && value !== undefined ? input.value.trim() : answer);
    }, { once: true });
  });
}
