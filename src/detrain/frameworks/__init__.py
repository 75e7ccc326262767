"""What DETrain asks of a framework, and the adapters that answer: one for each framework.

`base` holds the questions, `find` the adapters of what a program has imported. Only the module
(or package) named after a framework imports it.
"""
