"""GET /api/model: everything the page shows of the model."""

from fastapi import APIRouter

from engram.web.schemas import ModelView, problems
from engram.web.server import InjectedServer

router = APIRouter(tags=["look"])


@router.get("/api/model", responses=problems(503))
async def model(server: InjectedServer) -> ModelView:
    """The classes of the model, when each was learned, how they are drawn, and every change so far."""
    return await server.view()
