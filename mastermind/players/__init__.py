"""Computer players: strategies for breaking a code, of four strengths."""
