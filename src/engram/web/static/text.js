// The page's words, in the reader's language, and numbers as that language writes them.

const LANGUAGES = { en: "English", de: "Deutsch", fa: "فارسی" };
const RIGHT_TO_LEFT = ["fa"];
const RIGHT_TO_LEFT_LETTERS = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
const KEPT = "engram-language";
const NAMED = 3;  // classes in a sentence

let messages = {}, locale = "en", plurals, rightToLeft = false;

const kept = () => { try { return localStorage.getItem(KEPT); } catch { return null; } };  // a browser may forbid it
const keep = (language) => { try { localStorage.setItem(KEPT, language); } catch { /* for this visit only, then */ } };

// The language chosen before, or the first of the browser's that the page has; English if it has none.
export async function loadLanguage() {
  const wanted = [kept(), ...navigator.languages].filter(Boolean);
  const language = wanted.map((tag) => tag.split("-")[0]).find((tag) => tag in LANGUAGES) ?? "en";
  locale = navigator.languages.find((tag) => tag.split("-")[0] === language) ?? language;
  plurals = new Intl.PluralRules(locale);
  rightToLeft = RIGHT_TO_LEFT.includes(language);
  messages = await (await fetch(`lang/${language}.json`)).json();
  document.documentElement.lang = language;
  document.documentElement.dir = rightToLeft ? "rtl" : "ltr";
  for (const element of document.querySelectorAll("[data-t]")) element.textContent = t(element.dataset.t);
  for (const element of document.querySelectorAll("[data-t-label]")) element.ariaLabel = t(element.dataset.tLabel);
  offerLanguages(language);
}

function offerLanguages(present) {
  const choice = document.getElementById("language");
  choice.replaceChildren(...Object.entries(LANGUAGES).map(([tag, name]) => {
    const option = new Option(name, tag, tag === present, tag === present);
    option.lang = tag;
    return option;
  }));
  choice.onchange = () => { keep(choice.value); location.reload(); };
}

// A name that runs against the text around it is isolated, so that it does not drag its neighbours along.
const isolate = (text) => (RIGHT_TO_LEFT_LETTERS.test(text) === rightToLeft ? text : `\u2068${text}\u2069`);

// The message of that key; {n} picks its plural form.
export function t(key, values = {}) {
  const entry = messages[key];
  const message = typeof entry === "object" ? entry[plurals.select(values.n)] ?? entry.other : entry;
  return message.replace(/\{(\w+)\}/g, (_, name) => (typeof values[name] === "number" ? number(values[name]) : isolate(values[name])));
}

export const number = (value, options) => value.toLocaleString(locale, options);
// Class names in a sentence; many are only counted.
export const named = (names) => (names.length > NAMED ? t("classes", { n: names.length }) : list(names));
export const list = (names) => new Intl.ListFormat(locale, { type: "unit", style: "short" }).format(names);

// 100 % is said only of all, and 0 % only of none.
export function percent(share) {
  const small = share > 0 && share < 0.01, nearlyAll = share > 0.99 && share < 1;
  const shown = nearlyAll ? Math.min(share, 0.999) : small ? Math.max(share, 0.001) : share;
  return number(shown, { style: "percent", maximumFractionDigits: small || nearlyAll ? 1 : 0 });
}

const unit = (value, name, unitDisplay, maximumFractionDigits = 0) => number(value, { style: "unit", unit: name, unitDisplay, maximumFractionDigits });

export function bytes(count) {
  for (const [size, name] of [[1e9, "gigabyte"], [1e6, "megabyte"], [1e3, "kilobyte"]])
    if (count >= size) return unit(count / size, name, "short", count / size < 10 ? 1 : 0);
  return unit(count, "byte", "long");
}

export const seconds = (count) => (count < 90 ? unit(Math.max(1, count), "second", "short") : unit(count / 60, "minute", "short"));
export const milliseconds = (count) => unit(count, "millisecond", "short");
export const day = (when) => new Date(when).toLocaleDateString(locale, { dateStyle: "medium" });
export const moment = (when) => new Date(when).toLocaleString(locale, { dateStyle: "medium", timeStyle: "short" });
