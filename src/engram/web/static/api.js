// The server's HTTP API; /api/openapi.json describes it.

async function call(method, path, body) {
  const json = body !== undefined && !(body instanceof FormData);
  const response = await fetch(`api/${path}`, {
    method,
    body: json ? JSON.stringify(body) : body,
    headers: json ? { "Content-Type": "application/json" } : {},
  }).catch(() => { throw new Error("the server does not answer; is it still running?"); });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.detail ?? `the server answered ${response.status}`);
  return answer;
}

const form = (pictures, labels = []) => {
  const data = new FormData();
  // No file name leaves the browser.
  for (const [i, picture] of pictures.entries()) {
    if (labels.length) data.append("label", labels[i]);
    data.append("picture", picture, "picture");
  }
  return data;
};

export const model = () => call("GET", "model");
export const predict = (picture) => call("POST", "predict", form([picture]));
export const teach = (pictures, labels) => call("POST", "lessons", form(pictures, labels));
export const cancel = (number) => call("DELETE", `lessons/${number}`);
export const forget = (name) => call("POST", "forget", { name });
export const rename = (name, newName) => call("POST", "rename", { name, new_name: newName });
export const undo = (version) => call("POST", "undo", { version });

// Calls `tell` with every state the server reports, and `lost` with whether it is out of reach.
export function follow(tell, lost) {
  const source = new EventSource("api/events");
  source.onmessage = (event) => { lost(false); tell(JSON.parse(event.data)); };
  source.onerror = () => {
    lost(true);
    if (source.readyState === EventSource.CLOSED) setTimeout(() => follow(tell, lost), 2000);
  };
}
