"""Many pictures on many machines: blocks of them become sums, and sums are added up."""

from engram.cluster.blocks import BLOCK, Block, Setting, Summary, combine, cut_blocks, summarise
from engram.cluster.dask_job import Cluster

__all__ = ["BLOCK", "Block", "Cluster", "Setting", "Summary", "combine", "cut_blocks", "summarise"]
