"""The learners of the product: closed forms over class sums, one short file each, all with the same verbs."""
