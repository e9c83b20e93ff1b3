"""Pictures: decoded, cropped, taken out of videos, and encoded on every core."""
