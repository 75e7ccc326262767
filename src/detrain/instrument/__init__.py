"""Which loops of a program train, and their new headers.

`project` knows which files are the program's own, `find` which loops are on the way to a training
update, `rewrite` changes their headers, `hook` does so as modules are imported. Nothing of the
program is executed here.
"""
