"""Pictures and the names of their classes: folders, lists, what a detector found."""
