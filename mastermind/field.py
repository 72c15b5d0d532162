"""The BN254 scalar field: its modulus, strict parsing and fresh random elements.

The field of every signal, of Poseidon and of the salts and keys. Values are plain `int`s of
0 .. MODULUS - 1; nothing here ever reduces a value that is out of range.
"""

from __future__ import annotations

import re
import secrets

from mastermind.errors import NotInFieldError

#: The order r of the groups of BN254, and so the size of the field of signals.
MODULUS = 21888242871839275222246405745257275088548364400416034343698204186575808495617
#: The size q of the field that the coordinates of curve points live in.
COORDINATE_MODULUS = 21888242871839275222246405745257275088696311157297823662689037894645226208583

#: Decimal digits of MODULUS - 1: no canonical element is longer.
MAX_DIGITS = 77

_CANONICAL_DECIMAL = re.compile(r"0|[1-9][0-9]{0,76}", re.ASCII)


def require_field_element(value: object, name: str, modulus: int = MODULUS) -> int:
    """Return `value` if it is an `int` of 0 .. modulus - 1.

    Raises:
        NotInFieldError: it is anything else; `name` is in the message, the value is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < modulus:
        raise NotInFieldError(f"{name} is not an integer of 0 .. {'r' if modulus == MODULUS else 'q'} - 1")
    return value


def parse_field_element(text: object, name: str, modulus: int = MODULUS) -> int:
    """Parse the one canonical spelling of a field element: decimal, no sign, no leading zero.

    Raises:
        NotInFieldError: another spelling, another type, or a value of at least `modulus`.
    """
    if not isinstance(text, str) or _CANONICAL_DECIMAL.fullmatch(text) is None:
        raise NotInFieldError(f"{name} is not a decimal string of at most {MAX_DIGITS} digits")
    return require_field_element(int(text), name, modulus)


def random_field_element() -> int:
    """Draw a uniform element from the system's generator."""
    return secrets.randbelow(MODULUS)
