"""POST /api/forget, rename and undo: changes without pictures."""

from fastapi import APIRouter

from engram.web.limits import RefusedError
from engram.web.predictor import Snapshot
from engram.web.schemas import CHANGE_PROBLEMS, Forget, ModelView, Rename, Undo
from engram.web.server import InjectedServer
from engram.web.uploads import class_name

router = APIRouter(tags=["change"])


@router.post("/api/forget", responses=CHANGE_PROBLEMS)
async def forget(wanted: Forget, server: InjectedServer) -> ModelView:
    """Forget a class. The previous version is kept, and undo brings it back."""
    async with server.changing() as snapshot:
        _require_class(snapshot, wanted.name)
        await server.change(server.store.forget, wanted.name)
        server.queue.forget_class(wanted.name)
        return await server.view()


@router.post("/api/rename", responses=CHANGE_PROBLEMS)
async def rename(wanted: Rename, server: InjectedServer) -> ModelView:
    """Give a class another name."""
    async with server.changing() as snapshot:
        _require_class(snapshot, wanted.name)
        new = class_name(wanted.new_name, server.limits)
        await server.change(server.store.rename, wanted.name, new)
        server.queue.rename_class(wanted.name, new)
        return await server.view()


@router.post("/api/undo", responses=CHANGE_PROBLEMS)
async def undo(wanted: Undo, server: InjectedServer) -> ModelView:
    """Take the last change back: the previous version replaces the model, byte for byte."""
    async with server.changing() as snapshot:
        if snapshot.model.notes.version != wanted.version:
            raise RefusedError(409, "the model has changed meanwhile; look at it again first")
        await server.change(server.store.undo)
        return await server.view()


def _require_class(snapshot: Snapshot, name: str) -> None:
    if name not in snapshot.model.names:
        raise RefusedError(404, f"the model knows no class {name!r}")
