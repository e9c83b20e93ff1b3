"""φ: frozen, pretrained networks that turn pictures into feature vectors.

>>> from engram import backbones
>>> backbones.names()
['efficientnet_lite0', 'efficientnet_lite1', 'efficientnet_lite2', 'identity', 'resnet50', 'timm:', 'vgg16', 'vgg19']
>>> backbone = backbones.create("efficientnet_lite0")
>>> backbone.dim, backbone.preprocess.size
(1280, 224)
>>> backbones.create("efficientnet_lite0:joined:mirror").dim  # two layers, mirrored pictures averaged in
2432
"""

from engram.backbones import efficientnet, resnet, timm_models, vgg  # noqa: F401 (importing registers)
from engram.backbones.base import Backbone, BackboneError
from engram.backbones.preprocess import Preprocess
from engram.backbones.recorded import RecordedBackbone, create_named
from engram.backbones.registry import create, names, register

__all__ = ["Backbone", "BackboneError", "Preprocess", "RecordedBackbone", "create", "create_named", "names", "register"]
