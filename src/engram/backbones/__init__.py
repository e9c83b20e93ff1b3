"""Encoders that take torch: ResNet-50, VGG-16 and VGG-19, timm's models, and networks of one's own.

>>> from engram.encoders.registry import create
>>> create("resnet50:joined:mirror").dim  # doctest: +SKIP
3072
"""
