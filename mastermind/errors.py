"""Every error of the package, in one tree.

    MastermindError
    |-- InvalidInputError (ValueError)      what was given is wrong; the caller can correct it
    |   |-- InvalidRulesError
    |   |-- InvalidCodeError
    |   |-- InvalidClueError
    |   |-- NotInFieldError
    |   |-- InvalidSignalsError             inputs of a circuit: name, count, range or spelling
    |   |-- MissingSampleError              a circuit whose sample inputs nobody has given
    |   |-- MalformedProofError             a proof or public signals that are not well formed
    |   |-- MalformedKeyError               a verifying key that is not well formed
    |   |   `-- InsecureKeyError            ... or that makes every statement provable
    |   |-- MalformedEvidenceError          a transcript, certificate or reveal that is not well formed
    |   |-- SecretFileError                 a secret file: readable by others, damaged, wrong passphrase
    |   |-- WrongKeySetError
    |   |-- NotARefereeError                a URL that is none, or something else than a referee answers there
    |   |-- WrongProtocolError              a circuit that was set up for another protocol
    |   |-- InvalidProjectError             a project file or a circuit in it that is not as it should be
    |   |   `-- MissingProjectError         no project file at all
    |   |-- CompileError                    the source of a circuit: an error, or a warning that is not accepted
    |   |-- Phase1TooSmallError             a circuit that is too large for the phase 1
    |   `-- InvalidArtifactError            a file that is not what its manifest says
    |-- GameError                           the game says no
    |   |-- NotYourCodeError                a player was asked about a code that is the other player's
    |   |-- RefusedStepError                a step that does not fit the state; `refusal` names why
    |   |-- RejectedEvidenceError           a transcript, certificate or reveal that shows nothing; step and reason
    |   `-- RefereeError                    the referee says no; `refusal` names why
    |       |-- UnknownGameError
    |       |-- WrongStateError             not in this state or slot of the game
    |       |   `-- OutOfTurnError
    |       |-- ProofRejectedError          a step, certificate or consent that is not proved or does not fit the game
    |       |-- NotThePlayerError           somebody else's move, claim or decision
    |       |-- ReplayError                 of another game, stale, or a nonce used before
    |       |-- InsufficientCreditError
    |       `-- LimitReachedError           too large, too many or too often
    |-- ToolchainError                      something outside failed
    |   |-- ToolNotFoundError
    |   |-- ToolTimeoutError
    |   |-- ToolFailedError                 a tool ended with an error; argv, exit code, stderr tail
    |   |-- WitnessError                    the inputs do not satisfy the circuit
    |   `-- SetupError
    |-- RejectedCeremonyError               a ceremony that does not hold; circuit, contribution and contributor
    |-- BackendUnavailableError             a prover or verifier that this machine does not have
    |-- RefereeUnreachableError             no answer from a referee, or only that it has failed
    `-- ProofSelfCheckError                 a prover made a proof that does not verify

Facts are attributes; the message is one sentence for a person. Secrets are never part of either.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def counted(count: int, thing: str) -> str:
    """So many of a thing, as a sentence says it: `1 blow`, `2 guesses`."""
    return f"{count:,} {thing}" + ("" if count == 1 else "es" if thing.endswith("s") else "s")


class MastermindError(Exception):
    """The root of all errors raised on purpose."""


class InvalidInputError(MastermindError, ValueError):
    """Something given from outside is not acceptable."""


class InvalidRulesError(InvalidInputError):
    """Rules that no game can have."""


class InvalidCodeError(InvalidInputError):
    """A code that the rules do not allow."""


class InvalidClueError(InvalidInputError):
    """A clue that no pair of codes can have."""


class NotInFieldError(InvalidInputError):
    """A value that is not the canonical form of a field element."""


class InvalidSignalsError(InvalidInputError):
    """Inputs that do not fit the signals of a circuit; `signal` names the first bad one."""

    def __init__(self, message: str, *, signal: str) -> None:
        super().__init__(message)
        self.signal = signal


class MissingSampleError(InvalidInputError):
    """A circuit for which nobody has given sample inputs."""


class MalformedProofError(InvalidInputError):
    """A proof or a list of public signals that is not well formed; `field` names the part."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


class MalformedKeyError(InvalidInputError):
    """A verifying key that is not well formed; `field` names the part."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


class InsecureKeyError(MalformedKeyError):
    """A key whose phase 2 was skipped: anyone can prove anything under it."""


class MalformedEvidenceError(InvalidInputError):
    """A transcript, certificate or reveal that is not well formed; `field` names the part."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


class SecretFileError(InvalidInputError):
    """A player's or a game's secret file that cannot be used; `path` names it."""

    def __init__(self, message: str, *, path: Path) -> None:
        super().__init__(message)
        self.path = path


class WrongKeySetError(InvalidInputError):
    """Evidence made under other keys than the ones at hand."""


class NotARefereeError(InvalidInputError):
    """A URL that is none, or at which something else than a referee answers."""


class WrongProtocolError(InvalidInputError):
    """A circuit that was set up for another protocol than is asked of it."""


class InvalidProjectError(InvalidInputError):
    """A project that is not described as it should be; `field` names the part."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


class MissingProjectError(InvalidProjectError):
    """A folder that belongs to no project."""


class CompileError(InvalidInputError):
    """A circuit that does not compile, or compiles with a warning that is not accepted."""

    def __init__(self, message: str, *, file: str | None = None, line: int | None = None, reason: str = "") -> None:
        super().__init__(message)
        self.file = file
        self.line = line
        self.reason = reason


class Phase1TooSmallError(InvalidInputError):
    """A circuit that is too large for the phase 1 at hand; it needs one of the power `needed`."""

    def __init__(self, message: str, *, needed: int) -> None:
        super().__init__(message)
        self.needed = needed


class InvalidArtifactError(InvalidInputError):
    """A file that is damaged or is not what its manifest says; `path` names it."""

    def __init__(self, message: str, *, path: Path) -> None:
        super().__init__(message)
        self.path = path


class GameError(MastermindError):
    """Well-formed, but not so under the rules of the game."""


class NotYourCodeError(GameError):
    """A player was asked to score or open a code that they were never given."""


class RefusedStepError(GameError):
    """A step that the state of the game does not allow; `refusal` names the reason."""

    def __init__(self, message: str, *, refusal: str) -> None:
        super().__init__(message)
        self.refusal = refusal


class RejectedEvidenceError(GameError):
    """Evidence that does not show what it claims.

    `step` is the index of the bad step of a transcript, from 0 (None: the whole), `reason` says why.
    """

    def __init__(self, message: str, *, reason: str, step: int | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.step = step


class RefereeError(GameError):
    """The referee says no; nothing has changed. `refusal` names the reason, in one word for programs."""

    def __init__(self, message: str, *, refusal: str) -> None:
        super().__init__(message)
        self.refusal = refusal


class UnknownGameError(RefereeError):
    """A game that this referee does not know."""


class WrongStateError(RefereeError):
    """Something that the game does not allow in its present state, or in this slot."""


class OutOfTurnError(WrongStateError):
    """A move in somebody else's turn, or for another turn than the present one."""


class ProofRejectedError(RefereeError):
    """A proof that does not show what it should, or that shows something that does not fit the game."""


class NotThePlayerError(RefereeError):
    """Something that only somebody else may do."""


class ReplayError(RefereeError):
    """Evidence of another game or an earlier state, or an agreement that has been used."""


class InsufficientCreditError(RefereeError):
    """An account that holds less than is to be paid."""


class LimitReachedError(RefereeError):
    """A request that is too large, or one too many."""


class ToolchainError(MastermindError):
    """A tool of the build failed or is missing."""


class ToolNotFoundError(ToolchainError):
    """A program or package that is needed is not installed, or too old."""


class ToolTimeoutError(ToolchainError):
    """A tool did not finish in time and was killed."""

    def __init__(self, message: str, *, argv: Sequence[str], timeout_s: float) -> None:
        super().__init__(message)
        self.argv = tuple(argv)
        self.timeout_s = timeout_s


class ToolFailedError(ToolchainError):
    """A tool ended with an error."""

    def __init__(self, message: str, *, argv: Sequence[str], exit_code: int, stderr_tail: str) -> None:
        super().__init__(message)
        self.argv = tuple(argv)
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail


class WitnessError(ToolchainError):
    """Inputs for which the circuit has no witness; `template`, `file` and `line` say what refused, if known."""

    def __init__(
        self, message: str, *, template: str | None = None, file: str | None = None, line: int | None = None
    ) -> None:
        super().__init__(message)
        self.template = template
        self.file = file
        self.line = line


class SetupError(ToolchainError):
    """A trusted setup that cannot be done or did not work."""


class RejectedCeremonyError(MastermindError):
    """A ceremony whose keys are not those that its transcript tells of.

    `circuit` and `contribution` (from 1) name the place and `contributor` whose it is, as far as there is one.
    """

    def __init__(
        self, message: str, *, circuit: str | None = None, contribution: int | None = None, contributor: str = ""
    ) -> None:
        super().__init__(message)
        self.circuit = circuit
        self.contribution = contribution
        self.contributor = contributor


class BackendUnavailableError(MastermindError):
    """A prover or verifier that cannot be used here."""


class RefereeUnreachableError(MastermindError):
    """A referee that does not answer, or answers only that it has failed."""


class ProofSelfCheckError(MastermindError):
    """A freshly made proof that does not verify or states something else than was asked."""
