"""Checkpoints: copied in memory (`snapshot`), laid out as files (`format`), described (`manifest`),
made durable and published (`store`, `commit`); when (`policy`) and how long kept (`retention`).
"""
