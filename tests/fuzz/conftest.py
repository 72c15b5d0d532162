"""The one-constraint circuits of the toolkit's tests."""

from tests.zk.conftest import phase1, products

__all__ = ["phase1", "products"]
