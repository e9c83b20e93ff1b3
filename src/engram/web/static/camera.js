// The camera: a live view, and frames of it as JPEG files. One at a time on the page.
import { button, h } from "./dom.js";
import { redraw } from "./shrink.js";
import { t } from "./text.js";

const WIDEST = 640;
const HOLD = 350, RECORD_EVERY = 200;  // milliseconds: a press this long records, a frame this often
let openOne = null, asked = 0;

// Shows the camera in `place`; `controls(frame)` makes what lies below it. `frame()` resolves to a file.
export async function openCamera(place, { controls, failed, closed }) {
  openOne?.();
  if (!navigator.mediaDevices?.getUserMedia) {
    failed(t("camera.insecure"));
    return;
  }
  const video = h("video", { muted: true, playsInline: true, className: "live", ariaLabel: t("camera.view") });
  const mine = (asked += 1);
  const wantedStill = () => mine === asked;  // a camera takes a while to answer: meanwhile it was closed, or another opened
  let stream;
  const look = async (wanted) => {
    const next = await navigator.mediaDevices.getUserMedia({ video: { width: { ideal: WIDEST }, ...wanted }, audio: false });
    turnOff(wantedStill() ? stream : next);
    if (!wantedStill()) return;
    stream = next;
    video.srcObject = stream;
    video.classList.toggle("mirrored", facing(stream) !== "environment");  // as in a mirror, unless it looks away
    await video.play();
  };
  try {
    await look({ facingMode: "environment" });
  } catch (error) {
    failed(t(error.name === "NotAllowedError" ? "camera.denied" : "camera.none"));
    return;
  }
  const cameras = (await navigator.mediaDevices.enumerateDevices()).filter((device) => device.kind === "videoinput");
  if (!wantedStill()) {
    turnOff(stream);
    return;
  }
  const turn = button("plain", t("camera.turn"), () => look(other(stream, cameras)).catch(() => failed(t("camera.none"))), { hidden: cameras.length < 2 });
  const box = h("div", { className: "camera" }, video);
  const close = () => {
    if (openOne !== close) return;
    openOne = null;
    asked += 1;
    turnOff(stream);
    box.remove();
    closed?.();
  };
  openOne = close;
  const frame = () => redraw(video, Math.min(1, WIDEST / video.videoWidth), t("camera.frame"), video.videoWidth, video.videoHeight);
  box.append(controls(frame), h("div", { className: "row" }, turn, button("plain", t("camera.close"), close)));
  place.append(box);
  box.querySelector("button:not([hidden])").focus();
}

const turnOff = (stream) => stream?.getTracks().forEach((track) => track.stop());
const settings = (stream) => stream.getVideoTracks()[0].getSettings();
const facing = (stream) => settings(stream).facingMode;

// The camera on the other side; where cameras have no sides, the next one.
function other(stream, cameras) {
  if (facing(stream)) return { facingMode: facing(stream) === "environment" ? "user" : "environment" };
  const present = cameras.findIndex((camera) => camera.deviceId === settings(stream).deviceId);
  return { deviceId: { exact: cameras[(present + 1) % cameras.length].deviceId } };
}

// A shutter: a press takes one picture, holding it records until it is let go. `stop` also ends a recording.
export function shutter(take) {
  let timer;
  const stop = () => { clearTimeout(timer); clearInterval(timer); release.classList.remove("recording"); };
  const press = () => {
    stop();
    take();
    timer = setTimeout(() => { release.classList.add("recording"); timer = setInterval(take, RECORD_EVERY); }, HOLD);
  };
  const release = button("main shutter", t("camera.shutter"), (event) => {
    if (event.detail === 0) take();  // a click that is no press: speech, a screen reader
  });
  const isKey = (event) => event.key === " " || event.key === "Enter";
  release.addEventListener("pointerdown", (event) => { if (event.button === 0) press(); });
  for (const kind of ["pointerup", "pointercancel", "pointerleave", "blur"]) release.addEventListener(kind, stop);
  release.addEventListener("keydown", (event) => {
    if (!isKey(event)) return;
    event.preventDefault();  // no click of its own
    if (!event.repeat) press();
  });
  release.addEventListener("keyup", (event) => { if (isKey(event)) { event.preventDefault(); stop(); } });
  release.addEventListener("contextmenu", (event) => event.preventDefault());  // what a long touch would open
  return { release, stop };
}
