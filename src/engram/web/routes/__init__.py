"""The URLs of the page and its API, one module per topic."""
