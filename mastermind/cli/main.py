"""The `mastermind` command."""

from __future__ import annotations

import click

from mastermind.cli import ceremony, circuits, demo, duel, games, keys, play, players, proofs, referee, rules, solve, zk


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="mastermind-zk")
def main() -> None:
    """Mastermind with a zero-knowledge proof for every answer.

    \b
    Examples:
      mastermind build --rules hit-and-blow     build circuits and keys
      mastermind demo                           watch a game, every step proved and verified
      mastermind rules                          the rules that can be played

    Exit codes: 0 accepted, 1 rejected, 2 bad input, 3 a tool failed, 130 interrupted.
    """


main.add_command(rules.rules)
main.add_command(circuits.build)
main.add_command(circuits.circuits)
main.add_command(circuits.tools)
main.add_command(proofs.sample)
main.add_command(proofs.prove)
main.add_command(proofs.verify)
main.add_command(players.player)
main.add_command(games.game)
main.add_command(keys.keys)
main.add_command(ceremony.ceremony)
main.add_command(referee.referee)
main.add_command(play.play)
main.add_command(demo.demo)
main.add_command(duel.duel)
main.add_command(solve.solve)
main.add_command(zk.zk)
