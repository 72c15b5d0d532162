"""Option types that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from mastermind.errors import InvalidRulesError
from mastermind.game.circuits import specs
from mastermind.game.play import Table
from mastermind.players.strengths import STRENGTHS
from mastermind.rules import Rules
from mastermind.zk.artifacts import ArtifactStore, KeySet
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


class ParameterType(click.ParamType[tuple[str, bool | int | str]]):
    """A value for a template: `levels=20`."""

    name = "name=value"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> tuple[str, bool | int | str]:
        name, equals, text = str(value).partition("=")
        if not equals or not name.isidentifier():
            self.fail(f"{value!r} is not like levels=20", parameter, context)
        if text in ("true", "false"):
            return name, text == "true"
        digits = text.removeprefix("-")
        return name, int(text) if digits.isascii() and digits.isdecimal() and len(digits) <= 80 else text


READABLE_FILE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)

param_option = click.option(
    "--param",
    "parameters",
    type=ParameterType(),
    multiple=True,
    help="A value for the template, over those of the project; may be given several times.",
)
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


referee_option = click.option("--referee", "url", help="URL of the referee; a folder that is gone on with knows it.")
url_option = click.option("--referee", "url", required=True, help="URL of the referee.")
player_option = click.option("--player", "player_file", type=READABLE_FILE, required=True, help="Your player file.")
folder_option = click.option(
    "--folder", type=click.Path(path_type=Path, file_okay=False), required=True, help="The files of this game."
)
auto_option = click.option(
    "--auto",
    type=click.Choice(STRENGTHS),
    is_flag=False,
    flag_value="club",
    metavar="[STRENGTH]",
    help=f"Guess by itself, as well as {', '.join(STRENGTHS[:-1])} or {STRENGTHS[-1]}. [without STRENGTH: club]",
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


def load_key_sets(rules: Rules, store: ArtifactStore) -> Callable[[str], KeySet]:
    """Finds the key set of some rules by its id, if it is on this machine."""
    return lambda identifier: store.load_key_set(rules.spelling, specs(rules), identifier)


def make_tables(prover_name: str, store: ArtifactStore) -> Callable[[Rules, str], Table]:
    """Makes the table for some rules and key set id, if that key set is on this machine."""

    def make(rules: Rules, key_set_id: str) -> Table:
        return Table(rules, load_key_sets(rules, store)(key_set_id), make_prover(prover_name, store))

    return make


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
