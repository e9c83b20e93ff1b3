"""The one object behind every route: the store, the model in memory, the queue of lessons, and the limits."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Request

from engram.errors import ModelFileError
from engram.store import Health, ModelStore, Plan, examine
from engram.web.export import Exports
from engram.web.limits import Limits, RefusedError
from engram.web.predictor import Predictor, Snapshot
from engram.web.queue import LessonQueue
from engram.web.schemas import LessonView, ModelView, State
from engram.web.stamp import file_stamp


class Server:
    """Serves one model file. `plan` says how to learn, which matters most for a first model."""

    def __init__(self, store: ModelStore, plan: Plan, limits: Limits) -> None:
        self.store, self.plan, self.limits = store, replace(plan, all_or_nothing=True), limits
        self.predictor = Predictor(store, limits)
        self.queue = LessonQueue(store.path, store.device, limits)
        self.identity = secrets.token_hex(4)
        self.exports = Exports()
        self.closing = False  # streams of events end when it is set
        self._changing = asyncio.Lock()
        self._examined: tuple[object, Health] | None = None

    def begin_closing(self) -> None:
        """Let answers that would take long end now."""
        self.closing = True

    def close(self) -> None:
        """End the learning process and let the threads go."""
        self.queue.close()
        self.predictor.close()
        self.exports.close()

    async def current(self) -> Snapshot | None:
        """The model as it is now, if there is one."""
        return await asyncio.to_thread(self.predictor.current)

    async def existing(self) -> Snapshot:
        """The model as it is now; refuses the request if there is none."""
        snapshot = await self.current()
        if snapshot is None:
            raise RefusedError(409, "there is no model yet; teach it something first")
        return snapshot

    async def view(self) -> ModelView:
        """The model as clients see it."""
        name, problem = self.store.path.name, None
        try:
            snapshot = await self.current()
        except ModelFileError as error:
            snapshot, problem = None, str(error)
        if snapshot is None:
            view = ModelView.of_nothing(name, self.plan, problem)
            return view.model_copy(update={"can_undo": bool(problem and self.store.versions.numbers())})
        return ModelView.of(snapshot, await self.health(snapshot), name)

    async def health(self, snapshot: Snapshot) -> Health:
        """How the classes of that model are doing; examined once for a model."""
        if self._examined is None or self._examined[0] != snapshot.stamp:
            self._examined = snapshot.stamp, await asyncio.to_thread(examine, snapshot.model)
        return self._examined[1]

    def revision(self) -> tuple[int, str]:
        """A value that changes whenever `state` does."""
        return self.queue.revision, self._model_stamp()

    def _model_stamp(self) -> str:
        return "-".join(map(str, file_stamp(self.store.path) or (0,)))

    def state(self) -> State:
        """What the event stream reports."""
        lessons = list(map(LessonView.model_validate, self.queue.lessons()))
        return State(server=self.identity, model=self._model_stamp(), lessons=lessons)

    @contextlib.asynccontextmanager
    async def changing(self) -> AsyncIterator[Snapshot]:
        """Let one client at a time change the model without pictures; gives the model before the change."""
        async with self._changing:
            yield await self.existing()

    async def change(self, make: Callable[..., object], *arguments: object) -> None:
        """Make a change inside `changing`; refuses the request while lessons are under way."""
        if self.queue.busy():
            raise RefusedError(409, "a class is being learned; wait until that is done, or stop it first")
        try:
            await asyncio.to_thread(make, *arguments)
        except ValueError as error:  # the request is valid, but this model does not allow it
            raise RefusedError(409, str(error)) from error


async def get_server(request: Request) -> Server:  # async, or it would be called on a thread
    """The server of the application that a request came to."""
    server: Server = request.app.state.server
    return server


InjectedServer = Annotated[Server, Depends(get_server)]
