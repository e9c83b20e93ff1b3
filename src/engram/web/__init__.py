"""The page that learns by example: `engram serve MODEL`. Needs the extra `engram-learn[web]`."""
