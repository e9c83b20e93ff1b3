// Downloads, and how a program asks the same questions.
import * as api from "./api.js";
import { button, by, h } from "./dom.js";
import { toast } from "./notes.js";
import { bytes, t } from "./text.js";

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

export class Take {
  constructor() {
    by("onnx").onclick = () => this.onnx();
    by("snippets").append(...snippets(new URL(".", location.href).href, !LOOPBACK.includes(location.hostname)));
  }

  show(model) {
    by("onnx").hidden = !model.can_export;
    by("take-note").textContent = t("take.note", { name: model.name, size: bytes(model.bytes), version: model.version, backbone: model.backbone });
  }

  async onnx() {
    this.making(true);
    try {
      await api.makeOnnx();
      by("onnx-link").click();
    } catch (error) {
      toast(error.message);
    }
    this.making(false);
  }

  making(busy) {
    by("onnx").disabled = busy;
    by("onnx-progress").hidden = !busy;
  }
}

function snippets(address, withToken) {
  const python = [
    "import requests", "",
    'with open("picture.jpg", "rb") as picture:',
    `    answer = requests.post("${address}api/predict", files={"picture": picture}${withToken ? ', headers={"Authorization": "Bearer TOKEN"}' : ""})`,
    'print(answer.json()["answers"][0]["label"])',
  ].join("\n");
  const curl = `curl ${withToken ? '-H "Authorization: Bearer TOKEN" ' : ""}-F picture=@picture.jpg ${address}api/predict`;
  return [["Python", python], ["curl", curl]].map(([name, code]) => {
    const text = h("pre", { tabIndex: 0, dir: "ltr", ariaLabel: name }, h("code", {}, code));
    return h("div", { className: "snippet" }, h("div", { className: "headline" }, h("h3", {}, name), button("quiet", t("take.copy"), () => copy(text), { ariaLabel: t("take.copy-what", { name }) })), text);
  });
}

// Without https a page may not write to the clipboard: then the text is marked, to be copied by hand.
async function copy(element) {
  getSelection().selectAllChildren(element);
  try {
    await navigator.clipboard.writeText(element.textContent);
    toast(t("take.copied"));
  } catch {
    toast(t("take.marked"));
  }
}
