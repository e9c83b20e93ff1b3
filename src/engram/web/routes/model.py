"""GET /api/model and /api/confusion: everything the page shows of the model."""

from fastapi import APIRouter

from engram.web.limits import RefusedError
from engram.web.schemas import Confusion, ModelView, problems
from engram.web.server import InjectedServer

router = APIRouter(tags=["look"])


@router.get("/api/model", responses=problems(503))
async def model(server: InjectedServer) -> ModelView:
    """The classes of the model, when each was learned, how they are drawn, and every change so far."""
    return await server.view()


@router.get("/api/confusion", responses=problems(409, 503))
async def confusion(server: InjectedServer) -> Confusion:
    """What pictures of each class are taken for, as far as it can be told."""
    table = Confusion.of(await server.health(await server.existing()))
    if not table.rows:
        raise RefusedError(409, "nothing can be told: no picture is kept, and the method cannot leave one out")
    return table
