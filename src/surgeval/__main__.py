"""`python -m surgeval` is the command line."""

from surgeval.cli import main

main()
