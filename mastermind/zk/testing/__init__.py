"""Testing Circom circuits from pytest: what they accept, what rejects, and what a dishonest prover could do.

The plugin `mastermind.zk.testing.plugin` is found by pytest by itself; its fixture `circuits` loads a circuit. Start
with `CircuitUnderTest`, which says what can be asked of it. Everything is decided on the constraints, never on the
text of an error.
"""
