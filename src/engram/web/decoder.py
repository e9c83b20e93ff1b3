"""Decoding of pictures that may take long, in a process that can be ended.

Nothing stops a decoder that runs on a thread of the server: a picture of 40 million pixels takes it a second, a JPEG of
a thousand passes minutes. Such pictures wait for each other here, at low priority, and ordinary ones do not wait for
them.
"""

import asyncio
import contextlib
import multiprocessing
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from engram.web.limits import Limits
from engram.web.worker import lower_priority

if TYPE_CHECKING:
    from engram.encoders.base import Pixels

_PASSES = 32  # of an ordinary progressive JPEG there are about ten
_GRACE = 1.0  # seconds that are left to it when nobody waits for the picture any more: a new process takes longer


def may_take_long(content: bytes, pixels: int, limits: Limits) -> bool:
    """Whether a picture may take long to decode: it is large, or a JPEG that has its decoder pass over it many times.

    In a JPEG's data these two bytes are only where a pass begins.
    """
    return pixels > limits.easy_pixels or (content.startswith(b"\xff\xd8") and content.count(b"\xff\xda") > _PASSES)


class Decoder:
    """The server's handle to the process, which is started when it is first needed."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._thread = ThreadPoolExecutor(1, "engram-decoder")  # one picture at a time
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection[Any, Any]

    async def prepare(self, content: bytes, preprocess: object) -> "Pixels | str":
        """The picture as the network takes it, or why it cannot be read. Ends when it is cancelled."""
        gone = threading.Event()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, self._ask, content, preprocess, gone)
        finally:
            gone.set()

    def close(self) -> None:
        """End the process and let the thread go."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._process is not None:
            self._process.kill()  # which ends the waiting of the thread

    # --- the thread --------------------------------------------------------------------------------------------------

    def _ask(self, content: bytes, preprocess: object, gone: threading.Event) -> "Pixels | str":
        until = time.monotonic() + self.seconds
        try:
            if self._process is None:
                self._start()
                until = time.monotonic() + self.seconds
            self._pipe.send((content, preprocess))
            while time.monotonic() < until:
                if self._pipe.poll(0.1):
                    found: Pixels | str = self._pipe.recv()
                    return found
                if gone.is_set():
                    until = min(until, time.monotonic() + _GRACE)
                    gone.clear()
            reason = f"takes longer than {self.seconds:g} seconds to read; make it smaller"
        except (EOFError, OSError):  # perhaps for want of memory
            reason = "its decoder has died; make it smaller"
        self._end()
        return reason

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve_pictures, args=(theirs,), name="engram-decoder", daemon=True)
        self._process.start()
        theirs.close()  # otherwise the end of the process would go unnoticed here
        self._pipe.recv()  # it is ready

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None


# --- inside the process ----------------------------------------------------------------------------------------------


def serve_pictures(pipe: "Connection[Any, Any]") -> None:
    """Decode what comes through the pipe until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then ends this process
    lower_priority()
    from engram.store import ImageError, prepare

    with contextlib.suppress(EOFError, OSError):
        pipe.send("ready")
        while True:
            content, preprocess = pipe.recv()
            try:
                answer: Pixels | str = prepare(content, preprocess)
            except ImageError as error:
                answer = error.reason
            pipe.send(answer)
            del content, answer
