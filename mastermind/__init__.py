"""Zero-knowledge proving for Circom circuits from Python, and the games that prove it works."""
