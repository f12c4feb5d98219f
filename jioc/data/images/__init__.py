"""Image files: listed, decoded, kept decoded on disk."""
