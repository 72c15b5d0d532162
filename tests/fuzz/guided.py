"""Fuzz one parser, guided by coverage: `python -m tests.fuzz.guided PARSER FOLDER [options of libFuzzer]`."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["mastermind"]):
    from tests.fuzz.parsers import feed


def main() -> None:
    """Run until an input breaks the parser, or the options say that it is enough."""
    name = sys.argv[1]

    def once(data: bytes) -> None:
        feed(name, data)

    atheris.Setup([sys.argv[0], *sys.argv[2:]], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
