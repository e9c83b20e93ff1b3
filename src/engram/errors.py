"""Errors about a model file that people see. Apart from the rest, so that telling them takes no import of torch."""


class ModelFileError(Exception):
    """A model file that cannot be read or written, and why, in one line."""


class DamagedModelError(ModelFileError):
    """A file that is not, or no longer, a whole engram model."""


class NothingToDoError(Exception):
    """What was asked for is so already, or there is nothing it could be done to."""


class ModelBusyError(OSError):
    """Another process is changing the model; the message says which."""
