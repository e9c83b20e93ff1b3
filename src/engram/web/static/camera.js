// The camera: a live view, and frames of it as JPEG files. One at a time on the page.
import { h } from "./dom.js";

const WIDEST = 640;
let open = null;

// Shows the camera in `place`; `controls(frame, close)` makes what lies below it. `frame()` resolves to a file.
export async function openCamera(place, { controls, failed, closed }) {
  open?.();
  if (!navigator.mediaDevices?.getUserMedia) {
    failed("The browser lets a page use the camera only on this machine, or over https.");
    return;
  }
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ video: { width: { ideal: WIDEST } }, audio: false });
  } catch (error) {
    failed(error.name === "NotAllowedError" ? "The camera was not allowed." : "No camera was found.");
    return;
  }
  const video = h("video", { muted: true, playsInline: true, className: "live" });
  video.setAttribute("aria-label", "What the camera sees");
  video.srcObject = stream;
  await video.play();

  const frame = () => new Promise((resolve) => {
    const scale = Math.min(1, WIDEST / video.videoWidth);
    const canvas = h("canvas", { width: video.videoWidth * scale, height: video.videoHeight * scale });
    canvas.getContext("2d").drawImage(video, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => resolve(new File([blob], "camera.jpg", { type: "image/jpeg" })), "image/jpeg", 0.92);
  });
  const box = h("div", { className: "camera" }, video);
  const close = () => {
    if (open !== close) return;
    open = null;
    for (const track of stream.getTracks()) track.stop();
    box.remove();
    closed?.();
  };
  open = close;
  box.append(h("div", { className: "row" }, controls(frame, close),
    h("button", { type: "button", className: "plain", onclick: close }, "Close the camera")));
  place.append(box);
}
