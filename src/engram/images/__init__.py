"""From images to feature vectors, computed once and kept."""

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
    stream,
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
    "stream",
]
