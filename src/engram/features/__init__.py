"""From pictures to feature vectors, computed once and kept."""

from engram.features.cache import CacheEntry, FeatureCache
from engram.features.extraction import Features, extract
from engram.features.images import ImageError, load_image
from engram.features.stored import Stored

__all__ = ["CacheEntry", "FeatureCache", "Features", "ImageError", "Stored", "extract", "load_image"]
