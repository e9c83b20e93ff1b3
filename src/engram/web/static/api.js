// The server's HTTP API; /api/openapi.json describes it.
import { t } from "./text.js";

class Refused extends Error {
  constructor(status, answer) {
    super(answer.detail ?? t("server.status", { status }));
    this.status = status;
    this.similar = answer.similar;  // names that are nearly those of known classes
  }
}

let leaving = false;
function check(status, answer) {
  if (status === 401 && !leaving) {  // the page that the server shows instead asks for the token
    leaving = true;
    location.reload();
  }
  if (status < 200 || status > 299) throw new Refused(status, answer);
  return answer;
}

async function call(method, path, body) {
  const json = body !== undefined && !(body instanceof FormData);
  const response = await fetch(`api/${path}`, {
    method,
    body: json ? JSON.stringify(body) : body,
    headers: json ? { "Content-Type": "application/json" } : {},
  }).catch(() => { throw new Error(t("server.silent")); });
  return check(response.status, await response.json().catch(() => ({})));
}

const form = (pictures) => {
  const data = new FormData();
  for (const picture of pictures) data.append("picture", picture, "picture");  // no file name leaves the browser
  return data;
};

export const state = () => call("GET", "state");
export const model = () => call("GET", "model");
export const confusion = () => call("GET", "confusion");
// What a picture shows; with `among`, which of these classes.
export function predict(picture, among = []) {
  const data = form([picture]);
  if (among.length) data.append("among", among.join("\n"));
  return call("POST", "predict", data);
}
export const cancel = (number) => call("DELETE", `lessons/${number}`);
export const forget = (name) => call("POST", "forget", { name });
export const rename = (name, newName) => call("POST", "rename", { name, new_name: newName });
export const undo = (version) => call("POST", "undo", { version });
export const redo = (version) => call("POST", "redo", { version });
export const setUnknown = (share) => call("POST", "unknown", { share });

// What adding another model changes; without `commit`, what it would change.
export function merge(file, commit) {
  const data = new FormData();
  data.append("model", file, "model");
  if (commit) data.append("commit", "true");
  return call("POST", "merge", data);
}

// Waits until the ONNX file is ready to be downloaded; what comes of it is left to the link.
export async function makeOnnx() {
  const response = await fetch("api/model/onnx").catch(() => { throw new Error(t("server.silent")); });
  if (response.ok) await response.body.cancel();
  else check(response.status, await response.json().catch(() => ({})));
}

// Sends a lesson; `items` are [{ name, file }]. Only XMLHttpRequest tells how much has been sent. `stop` ends it.
export function teach(items, { distinct, progress, stop }) {
  const data = form(items.map((item) => item.file)), request = new XMLHttpRequest();
  for (const { name } of items) data.append("label", name);
  if (distinct) data.append("distinct", "true");
  return new Promise((resolve, reject) => {
    request.upload.onprogress = (event) => progress(event.loaded, event.total);
    request.onerror = () => reject(new Error(t("server.silent")));
    request.onabort = () => reject(new Error(t("teach.stopped")));
    request.onload = () => {
      try { resolve(check(request.status, request.response ?? {})); } catch (error) { reject(error); }
    };
    stop.addEventListener("abort", () => request.abort());
    request.responseType = "json";
    request.open("POST", "api/lessons");
    request.send(data);
  });
}
