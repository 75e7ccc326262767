"""From live objects to a `StateTree` and back. Knows no framework, writes no file.

`walk` describes what is reachable; `restore` fills a rebuilt program in place; `forms` says, kind
by kind, how both are done; `hidden` finds state that fields don't show; `frames` reads and binds
the plain variables of a running function.
"""
