"""A model on disk over time: learn, predict, evaluate, forget, undo. The command line and the page are made of it.

Nothing here prints. Names are imported when they are first used: a question loads what a question needs.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "engram.errors": "ModelBusyError NothingToDoError",
    "engram.history": "Event Notes What",
    "engram.images.crop": "Crop",
    "engram.images.decode": "ImageError",
    "engram.images.stream": "Unreadable prepare",
    "engram.model": "Model",
    "engram.names": "SURE UNKNOWN similar_name",
    "engram.store.card": "model_card tell_what_is_kept",
    "engram.store.detections": "add_classifications crop_classes crops write_detections",
    "engram.store.drift": "measure_drift warn_of_drift",
    "engram.store.evaluate": "Evaluation evaluate_images",
    "engram.store.film": "predict_film",
    "engram.store.health": "ClassHealth Health examine",
    "engram.store.image_bytes": "ImageBytes ImageUrl",
    "engram.store.inbox": "AnswerLog Wanted watch_inbox watch_stream",
    "engram.store.learn": "learn_classes",
    "engram.store.merge": "MergeSource Merger merge_models plan_merge",
    "engram.store.model_store": "ModelStore",
    "engram.store.new": "new_model",
    "engram.store.plan": "Plan",
    "engram.store.predict": "Answer Ranked predict_images unknown_threshold",
    "engram.store.recognition": "twins",
    "engram.store.report": "Learned Report Step Suspect",
    "engram.store.statistics": "write_statistics",
    "engram.store.taxonomy": "Namer read_taxonomy",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'engram.store' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
