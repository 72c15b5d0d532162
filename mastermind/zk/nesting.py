"""JSON text from outside, before a parser sees it: its encoding and how deeply it is nested.

Python's JSON parser calls itself for every bracket. py_ecc raises the recursion limit of the whole process to 100,000,
and long before that the stack overflows and the process dies, so a parser must not meet deeply nested text.
"""

from __future__ import annotations

import re

#: No proof, key, manifest or transcript comes near this.
MAX_NESTING = 64

# A string, up to the end of the text when it is never closed: each character is looked at once.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def shallow_text(data: str | bytes) -> str:
    """Return JSON text that is safe to parse.

    Raises:
        ValueError: it is not UTF-8, or nested more than MAX_NESTING deep.
    """
    text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
    depth = 0
    for token in _TOKEN.finditer(text):
        bracket = text[token.start()]
        if bracket == '"':
            continue
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_NESTING:
            raise ValueError("nested too deeply")
    return text
