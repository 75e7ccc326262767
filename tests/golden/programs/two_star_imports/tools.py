import time


def since(start):
    return f"{time.time() - start:.1f} s"
