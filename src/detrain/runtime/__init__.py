"""The run itself: loops that can be re-entered, checkpoints on the way, resume, the trace.

`api` is what a program calls, `hooks` what rewritten loops call, `session` what both talk to and
`attempt` its hold on the run; `level`, `roots` and `advance` are the state of a loop, `rebuild` the
way back into a checkpoint, `saving` the way out into one.
"""
