"""`python -m detrain` is `detrain`."""

from __future__ import annotations

from detrain.cli import main

if __name__ == "__main__":
    main()
