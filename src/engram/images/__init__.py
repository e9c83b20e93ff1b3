"""From images to feature vectors, computed once and kept."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engram.images.cache import CacheEntry, FeatureCache
    from engram.images.cached_features import CachedFeatures
    from engram.images.crop import Crop
    from engram.images.decode import ImageError, load_image, source_name
    from engram.images.extraction import (
        Features,
        Images,
        Lookable,
        Pictures,
        Prepared,
        extract,
        holds_pictures,
        prepare,
    )
    from engram.images.forward import Unreadable

__all__ = [
    "CacheEntry",
    "CachedFeatures",
    "Crop",
    "FeatureCache",
    "Features",
    "ImageError",
    "Images",
    "Lookable",
    "Pictures",
    "Prepared",
    "Unreadable",
    "extract",
    "holds_pictures",
    "load_image",
    "prepare",
    "source_name",
]

_HOMES = {
    "CacheEntry": "cache",
    "CachedFeatures": "cached_features",
    "Crop": "crop",
    "FeatureCache": "cache",
    "Features": "extraction",
    "ImageError": "decode",
    "Images": "extraction",
    "Lookable": "extraction",
    "Pictures": "extraction",
    "Prepared": "extraction",
    "Unreadable": "forward",
    "extract": "extraction",
    "holds_pictures": "extraction",
    "load_image": "decode",
    "prepare": "extraction",
    "source_name": "decode",
}


def __getattr__(name: str) -> Any:
    """Import on first use: `decode`, `crop` and `stream` take no torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'engram.images' has no attribute {name!r}")
    return getattr(import_module(f"engram.images.{_HOMES[name]}"), name)
