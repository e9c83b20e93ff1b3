"""From pictures to feature vectors, computed once and kept."""

from engram.images.cache import CacheEntry, FeatureCache
from engram.images.decode import ImageError, load_image
from engram.images.extraction import Features, Pictures, extract, holds_pictures
from engram.images.stored import Stored

__all__ = [
    "CacheEntry",
    "FeatureCache",
    "Features",
    "ImageError",
    "Pictures",
    "Stored",
    "extract",
    "holds_pictures",
    "load_image",
]
