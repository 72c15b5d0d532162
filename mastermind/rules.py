"""The rules of Mastermind: what a legal code is, how a guess is scored, which clues can exist.

Pure domain, the reference for circuits, referee and computer players alike. Scoring follows
PROTOCOL section 1: a colour is never counted twice.
"""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import perm
from typing import NamedTuple

from mastermind.errors import InvalidClueError, InvalidCodeError, InvalidRulesError, counted

#: A clue packs each of its two counts into 3 bits.
MAX_PEGS = 7
#: A history must be one field element, injectively.
MAX_HISTORY_BITS = 253
#: More colours than this have no use at a board, and the circuits grow with them.
MAX_COLOURS = 64
CLUE_BITS = 6

Code = tuple[int, ...]

_SPELLED = re.compile(r"([1-9][0-9]?)x([1-9][0-9]?)([ru])([1-9][0-9]{0,2})", re.ASCII)


class Clue(NamedTuple):
    """The answer to a guess: `hits` right colours in the right place, `blows` right colours elsewhere."""

    hits: int
    blows: int


@dataclass(frozen=True)
class Rules:
    """One set of rules; every circuit and key set belongs to one.

    Attributes:
        pegs: places in a code, 1 .. 7.
        colours: colours to choose from, 2 .. 64; colours are 0 .. colours - 1.
        repeats: whether a colour may stand in several places.
        attempts: guesses the breaker has, at least 1.

    Raises:
        InvalidRulesError: no game can have these values.
    """

    pegs: int
    colours: int
    repeats: bool
    attempts: int

    def __post_init__(self) -> None:
        for name in ("pegs", "colours", "attempts"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise InvalidRulesError(f"{name} must be an integer")
        if not isinstance(self.repeats, bool):
            raise InvalidRulesError("repeats must be true or false")
        if not 1 <= self.pegs <= MAX_PEGS:
            raise InvalidRulesError(f"pegs must be 1 .. {MAX_PEGS}, not {self.pegs}")
        if not 2 <= self.colours <= MAX_COLOURS:
            raise InvalidRulesError(f"colours must be 2 .. {MAX_COLOURS}, not {self.colours}")
        if not self.repeats and self.colours < self.pegs:
            raise InvalidRulesError(f"{self.pegs} pegs without repeats need at least {self.pegs} colours")
        if self.attempts < 1:
            raise InvalidRulesError("attempts must be at least 1")
        if max(self.peg_bits * self.pegs, CLUE_BITS) * self.attempts > MAX_HISTORY_BITS:
            raise InvalidRulesError(
                f"{self.attempts} attempts do not fit a history of {MAX_HISTORY_BITS} bits; "
                f"at most {MAX_HISTORY_BITS // max(self.peg_bits * self.pegs, CLUE_BITS)} do"
            )

    @classmethod
    def parse(cls, text: str) -> Rules:
        """Read a named rule (`classic`) or a spelled one (`4x6r10`: pegs x colours, r or u, attempts).

        Raises:
            InvalidRulesError: the text is neither, or the values are not legal.
        """
        if text in NAMED_RULES:
            return NAMED_RULES[text]
        match = _SPELLED.fullmatch(text)
        if match is None:
            raise InvalidRulesError(
                f"{text!r} is neither a named rule ({', '.join(NAMED_RULES)}) nor spelled like 4x6r10 "
                "(pegs x colours, r for repeats or u for unique, attempts)"
            )
        pegs, colours, repeats, attempts = match.groups()
        return cls(int(pegs), int(colours), repeats == "r", int(attempts))

    @property
    def spelling(self) -> str:
        """The spelled form, e.g. `4x8u7`; `Rules.parse` reads it back."""
        return f"{self.pegs}x{self.colours}{'r' if self.repeats else 'u'}{self.attempts}"

    @property
    def name(self) -> str:
        """The name these rules ship under, or else their spelling."""
        return next((name for name, rules in NAMED_RULES.items() if rules == self), self.spelling)

    @property
    def peg_bits(self) -> int:
        """Bits a peg takes when packed: at least 3, as in the reference zkApp."""
        return max(3, (self.colours - 1).bit_length())

    @property
    def code_count(self) -> int:
        """How many legal codes there are."""
        return self.colours**self.pegs if self.repeats else perm(self.colours, self.pegs)

    def require_code(self, pegs: Sequence[int], what: str = "code") -> Code:
        """Return `pegs` as a code.

        Raises:
            InvalidCodeError: wrong length, a colour out of range, or one used twice. The message
                calls the code `what` and repeats none of its pegs.
        """
        if len(pegs) != self.pegs:
            raise InvalidCodeError(f"the {what} has {counted(len(pegs), 'peg')} where the rules have {self.pegs}")
        for place, peg in enumerate(pegs, start=1):
            if isinstance(peg, bool) or not isinstance(peg, int) or not 0 <= peg < self.colours:
                raise InvalidCodeError(f"peg {place} of the {what} is not a colour of 0 .. {self.colours - 1}")
        if not self.repeats and len(set(pegs)) != len(pegs):
            raise InvalidCodeError(f"the {what} uses a colour twice, and these rules do not allow that")
        return tuple(pegs)

    def require_clue(self, clue: Clue) -> Clue:
        """Return `clue` if some pair of legal codes has it.

        Raises:
            InvalidClueError: no pair has.
        """
        hits, blows = clue
        for value in clue:
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InvalidClueError("hits and blows are counts")
        # With all places but one right, the last colour cannot stand elsewhere.
        possible = hits + blows <= self.pegs and (hits, blows) != (self.pegs - 1, 1)
        if not self.repeats:
            # Two sets of `pegs` colours out of `colours` share at least this many.
            possible = possible and hits + blows >= 2 * self.pegs - self.colours
        elif self.colours == 2:
            # Wherever two-colour codes differ, they differ by the same exchange: blows come in pairs.
            possible = possible and blows % 2 == 0
        if not possible:
            raise InvalidClueError(
                f"no guess can have {counted(hits, 'hit')} and {counted(blows, 'blow')} under these rules"
            )
        return Clue(hits, blows)

    def score(self, secret: Sequence[int], guess: Sequence[int]) -> Clue:
        """Score `guess` against `secret`; both legal codes.

        Raises:
            InvalidCodeError: one of them is not legal.
        """
        secret = self.require_code(secret, "secret")
        guess = self.require_code(guess, "guess")
        hits = sum(s == g for s, g in zip(secret, guess, strict=True))
        return Clue(hits, (Counter(secret) & Counter(guess)).total() - hits)

    def random_code(self) -> Code:
        """Draw a uniform legal code from the system's generator."""
        if self.repeats:
            return tuple(secrets.randbelow(self.colours) for _ in range(self.pegs))
        return tuple(secrets.SystemRandom().sample(range(self.colours), self.pegs))


#: The rules that ship by name. `hit-and-blow` are those of the reference zkApp.
NAMED_RULES = {
    "hit-and-blow": Rules(pegs=4, colours=8, repeats=False, attempts=7),
    "classic": Rules(pegs=4, colours=6, repeats=True, attempts=10),
    "deluxe": Rules(pegs=5, colours=8, repeats=True, attempts=12),
}
