"""Pools of processes and threads: what their tasks draw, and the order of what they give.

A task draws what its key says, whoever does it and when (`task`, `drawing`). Tasks in processes run
side by side; tasks in threads share the generators of the process, so those that draw take turns
(`turns`, `judge`). Results come in the order of submission (`order`). `install` puts all of it
before Python's own pools while a run is on, and takes it away afterwards.
"""
