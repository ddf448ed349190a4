"""Entry point of `python -m zerolayer_dev`."""

from zerolayer_dev.cli import main

if __name__ == "__main__":
    main()
