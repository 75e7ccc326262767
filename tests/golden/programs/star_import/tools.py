"""What the script imports with a star."""

history = []
rate = 0.0
seen = 0


def count(value):
    global seen, rate
    seen += 1
    rate = value


def show():
    print(history, seen, rate)
