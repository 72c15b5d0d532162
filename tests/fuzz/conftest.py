"""The one-constraint circuits of the toolkit's tests."""

from tests.zk.conftest import products

__all__ = ["products"]
