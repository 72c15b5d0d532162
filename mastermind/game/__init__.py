"""Mastermind on the proving toolkit: its circuits, and what their statements say."""
