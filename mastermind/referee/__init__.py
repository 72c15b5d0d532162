"""The referee: holds both stakes, accepts a move only with its proof, and pays exactly one winner.

    ledger <- contract <- requests <- log, storage <- referee <- service
                                   <- client <- players

It knows no secret and can forge no move; everything it did can be checked again from its log.
"""
