"""From a program's text to what a checkpoint must contain. Nothing of the program is executed."""
