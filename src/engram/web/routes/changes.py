"""POST /api/forget, rename, unknown, undo and redo: changes without pictures."""

from fastapi import APIRouter

from engram.web.limits import RefusedError
from engram.web.predictor import Snapshot
from engram.web.schemas import CHANGE_PROBLEMS, Forget, ModelView, Refuse, Rename, Undo
from engram.web.server import InjectedServer
from engram.web.uploads import class_name

router = APIRouter(tags=["change"])


@router.post("/api/forget", responses=CHANGE_PROBLEMS)
async def forget(wanted: Forget, server: InjectedServer) -> ModelView:
    """Forget a class. The previous version is kept, and undo brings it back."""
    async with server.changing() as snapshot:
        _require_class(snapshot, wanted.name)
        await server.change(server.store.forget, wanted.name)
        return await server.view()


@router.post("/api/rename", responses=CHANGE_PROBLEMS)
async def rename(wanted: Rename, server: InjectedServer) -> ModelView:
    """Give a class another name."""
    async with server.changing() as snapshot:
        _require_class(snapshot, wanted.name)
        new = class_name(wanted.new_name, server.limits)
        await server.change(server.store.rename, wanted.name, new)
        return await server.view()


@router.post("/api/unknown", responses=CHANGE_PROBLEMS)
async def unknown(wanted: Refuse, server: InjectedServer) -> ModelView:
    """Set how many pictures of known classes may be called unknown: the more, the more strangers are found out."""
    async with server.changing():
        await server.change(server.store.refuse, wanted.share)
        return await server.view()


@router.post("/api/undo", responses=CHANGE_PROBLEMS)
async def undo(wanted: Undo, server: InjectedServer) -> ModelView:
    """Take the last change back: the previous version replaces the model, byte for byte.

    A model that cannot be read, which is version 0 to its clients, gives way to the last version that is whole.
    """
    if (await server.view()).problem is not None and wanted.version == 0:
        await server.change(server.store.undo)
        return await server.view()
    async with server.changing() as snapshot:
        _require_newest(snapshot, wanted.version)
        await server.change(server.store.undo)
        return await server.view()


@router.post("/api/redo", responses=CHANGE_PROBLEMS)
async def redo(wanted: Undo, server: InjectedServer) -> ModelView:
    """Make the change again that was undone last. Any other change ends what can be made again."""
    async with server.changing() as snapshot:
        _require_newest(snapshot, wanted.version)
        await server.change(server.store.redo)
        return await server.view()


def _require_newest(snapshot: Snapshot, version: int) -> None:
    if snapshot.model.notes.version != version:
        raise RefusedError(409, "the model has changed since; undo the later change first, or look at the model again")


def _require_class(snapshot: Snapshot, name: str) -> None:
    if name not in snapshot.model.names:
        raise RefusedError(404, f"the model knows no class {name!r}")
