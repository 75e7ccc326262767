"""The runs on disk: one folder each, owned by one process at a time."""
