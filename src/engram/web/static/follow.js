// What the server reports, to every tab. A browser opens few connections to one server, and a stream holds one for good:
// so one tab has the stream and tells the others. Without locks (http from another machine) each tab asks in turns.
import * as api from "./api.js";

const ASK_EVERY = 2000, SILENCE = 10_000;  // milliseconds
const wait = (time) => new Promise((resolve) => { setTimeout(resolve, time); });

// Calls `tell` with every state the server reports, and `lost` with whether it is out of reach.
export function follow(tell, lost) {
  let heard = 0;
  const take = (state) => {
    heard = Date.now();
    lost(state === null);
    if (state) tell(state);
  };
  const ask = async () => take(await api.state().catch(() => null));
  if (!navigator.locks || !window.BroadcastChannel) {
    repeat(ask, ASK_EVERY);
    return;
  }
  const tabs = new BroadcastChannel("engram");
  tabs.onmessage = (event) => take(event.data);
  navigator.locks.request("engram-stream", () => stream((state) => { take(state); tabs.postMessage(state); }));
  // The tab with the stream may be asleep: one that is looked at and hears nothing asks for itself.
  repeat(async () => { if (!document.hidden && Date.now() - heard > SILENCE) await ask(); }, ASK_EVERY);
}

async function repeat(step, pause) {
  for (;;) {
    await step();
    await wait(pause);
  }
}

// Never resolves: the lock is this tab's until it closes.
function stream(take) {
  const open = () => {
    const source = new EventSource("api/events");
    source.onmessage = (event) => take(JSON.parse(event.data));
    source.onerror = async () => {
      take(await api.state().catch(() => null));  // a stream cannot say why it ended; this reloads if a token is asked for
      if (source.readyState === EventSource.CLOSED) setTimeout(open, ASK_EVERY);
    };
  };
  open();
  return new Promise(() => {});
}
