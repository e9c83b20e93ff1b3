"""The commands of the experiments, which `engram` finds as entry points; each module registers its own."""

from engram.bench.commands import features as features  # isort: skip
from engram.bench.commands import bench as bench  # isort: skip
from engram.bench.commands import cache as cache  # isort: skip
