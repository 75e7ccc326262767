"""The run itself: loops that can be re-entered, checkpoints on the way, resume, the trace.

`api` is what a program calls, `session` what it talks to; `level` and `advance` are the state of
one loop, `rebuild` the way back into a checkpoint, `saving` the way out into one.
"""
