"""`python -m mastermind`."""

from mastermind.cli import main

main(prog_name="mastermind")
