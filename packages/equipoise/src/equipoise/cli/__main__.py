"""``python -m equipoise.cli``."""

from equipoise.cli.main import main

if __name__ == "__main__":
    main()
