"""Option types that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from mastermind.errors import InvalidRulesError
from mastermind.game.circuits import specs
from mastermind.rules import Rules
from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.circuit import CircuitSpec
from mastermind.zk.prove import NativeProver, Prover, SnarkjsProver
from mastermind.zk.snarkjs import SnarkjsCli
from mastermind.zk.tools import Toolchain
from mastermind.zk.verify import VERIFIER_NAMES, NativeVerifier, ReferenceVerifier, SnarkjsVerifier, Verifier


class RulesType(click.ParamType[Rules]):
    """Rules by name (`classic`) or spelled (`4x6r10`)."""

    name = "rules"

    def convert(self, value: str | Rules, parameter: click.Parameter | None, context: click.Context | None) -> Rules:
        if isinstance(value, Rules):
            return value
        try:
            return Rules.parse(value)
        except InvalidRulesError as error:
            self.fail(str(error), parameter, context)


READABLE_FILE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)

rules_option = click.option(
    "--rules",
    type=RulesType(),
    default="hit-and-blow",
    show_default=True,
    help="A named rule, or one spelled like 4x6r12 (pegs x colours, r repeats or u unique, attempts).",
)
prover_option = click.option(
    "--prover",
    "prover_name",
    type=click.Choice(["native", "snarkjs", "auto"]),
    default="auto",
    show_default=True,
    help="Who makes the proof; auto is native.",
)
verifier_option = click.option(
    "--verifier",
    "verifier_name",
    type=click.Choice([*VERIFIER_NAMES, "all"]),
    default="native",
    show_default=True,
    help="Who checks the proof.",
)


def specs_of(name: str) -> Sequence[CircuitSpec]:
    """The circuits of the key set of some name, which is the spelling of its rules.

    Raises:
        InvalidRulesError: there are no such rules, or the name is another one for them.
    """
    rules = Rules.parse(name)
    if rules.spelling != name:
        raise InvalidRulesError(f"the rules of a key set are spelled out: {rules.spelling}, not {name}")
    return specs(rules)


def make_prover(name: str, store: ArtifactStore) -> Prover:
    """Return the prover of that name. `auto` is the native one: it is the fastest, and needs no Node."""
    if name == "snarkjs":
        return SnarkjsProver(SnarkjsCli(Toolchain.install(store.home)))
    return NativeProver()


def make_verifiers(name: str, store: ArtifactStore) -> list[Verifier]:
    """Return the verifier of that name, or all of them."""
    verifiers: list[Verifier] = []
    for wanted in VERIFIER_NAMES if name == "all" else (name,):
        if wanted == "native":
            verifiers.append(NativeVerifier())
        elif wanted == "reference":
            verifiers.append(ReferenceVerifier())
        else:
            verifiers.append(SnarkjsVerifier(SnarkjsCli(Toolchain.install(store.home))))
    return verifiers
