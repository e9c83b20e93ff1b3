"""The learners: one file each, all with the same verbs, found by name."""

from engram.methods.registry import METHODS as METHODS
from engram.methods.registry import MissingMethodError as MissingMethodError
from engram.methods.registry import find_method as find_method
