"""The mathematics under the learners: pure functions and values on numpy arrays."""
