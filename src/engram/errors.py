"""Errors that people see, apart from what raises them: to tell them takes no import of that."""


class ModelFileError(Exception):
    """A model file that cannot be read or written, and why, in one line."""


class DamagedModelError(ModelFileError):
    """A file that is not, or no longer, a whole engram model."""


class NothingToDoError(Exception):
    """What was asked for is so already, or there is nothing it could be done to."""


class ModelBusyError(OSError):
    """Another process is changing the model; the message says which."""


class DataError(ValueError):
    """A data set that is not there, or not what it should be; the message says what to do."""
