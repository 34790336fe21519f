"""Lets `python -m counterbalance` do what `counterbalance` does."""

from counterbalance.cli import main

if __name__ == "__main__":
    main()
