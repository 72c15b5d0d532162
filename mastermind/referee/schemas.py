"""The shapes of requests and answers, for the OpenAPI document, with an example of each.

Documentation only: what decides is the strict reading in `mastermind.referee.requests`. The proofs in the examples are
well formed and prove nothing.
"""

from __future__ import annotations

from typing import Any

from mastermind.game.duel import Outcome
from mastermind.referee.contract import MAX_REWARD, Refusal
from mastermind.referee.match import GUEST, HOST
from mastermind.rules import NAMED_RULES
from mastermind.zk.curve import G2_GENERATOR, G1Point
from mastermind.zk.evidence import Proof

_ELEMENT_PATTERN = r"^(0|[1-9][0-9]{0,76})$"
_POINT = G1Point(1, 2)
_PROOF_EXAMPLE = Proof(_POINT, G2_GENERATOR, _POINT).to_json()
_CONSENT_EXAMPLE = {"nonce": "17", "proof": _PROOF_EXAMPLE}
_RULES_EXAMPLE = NAMED_RULES["hit-and-blow"].spelling
_KEY_SET_EXAMPLE = "00" * 32


def _object(properties: dict[str, Any], required: list[str] | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required or list(properties), **more}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _step(kind: str, signals: int) -> dict[str, Any]:
    public = {"type": "array", "items": _ref("Element"), "minItems": signals, "maxItems": signals}
    properties = {"step": {"const": kind}, "public": public, "proof": _ref("Proof")}
    if kind == "join_game":
        properties["nonce"] = _ref("Element")
    return _object(properties, additionalProperties=False)


def _step_example(kind: str, signals: int) -> dict[str, Any]:
    nonce = {"nonce": "17"} if kind == "join_game" else {}
    return {"step": kind, **nonce, "public": ["1"] * signals, "proof": _PROOF_EXAMPLE}


def _pair(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema, "minItems": 2, "maxItems": 2}


def _answer(one: str, contract: str) -> dict[str, Any]:
    return _object(
        {
            one: _ref("Element"),
            "event": {"type": "integer"},
            "slot": {"type": "integer"},
            "method": {"type": "string"},
            "keys": {"enum": ["development", "ceremony"]},
            "key_set_id": {"type": "string"},
            "contract": _ref(contract),
        },
        description="What an accepted request did. The same request has the same answer however often it is sent.",
    )


def _now(one: str, contract: str) -> dict[str, Any]:
    return _object(
        {
            one: _ref("Element"),
            "events": {"type": "integer"},
            "slot": {"type": "integer"},
            "keys": {"enum": ["development", "ceremony", "unknown"]},
            "key_set_id": {"type": "string"},
            "contract": _ref(contract),
        }
    )


_AMOUNT = {"type": "integer", "minimum": 0, "maximum": 2 * MAX_REWARD}
_CODE = {"type": "array", "items": {"type": "integer"}}
_CERTIFICATE_ELEMENTS = (
    "solution_hash",
    "master_id",
    "breaker_id",
    "nonce",
    "turn_count",
    "guess_history",
    "clue_history",
    "is_solved",
)

SCHEMAS: dict[str, Any] = {
    "Element": {"type": "string", "pattern": _ELEMENT_PATTERN, "description": "A field element, canonical decimal."},
    "Proof": _object(
        {
            "pi_a": {"type": "array", "minItems": 3, "maxItems": 3, "items": {"type": "string"}},
            "pi_b": {
                "type": "array",
                "minItems": 3,
                "maxItems": 3,
                "items": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "string"}},
            },
            "pi_c": {"type": "array", "minItems": 3, "maxItems": 3, "items": {"type": "string"}},
            "protocol": {"const": "groth16"},
            "curve": {"const": "bn128"},
        },
        additionalProperties=False,
        description="A Groth16 proof as snarkjs writes it.",
    ),
    "Consent": _object(
        {"nonce": _ref("Element"), "proof": _ref("Proof")},
        description=(
            "An `authorise` proof over the agreement of action, referee, game or match (its solution hash), amount "
            "and nonce. "
            "A nonce is used once."
        ),
    ),
    "Certificate": _object(
        {
            "format": {"const": "mastermind certificate 1"},
            "rules": {"type": "string"},
            "key_set_id": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            **{name: _ref("Element") for name in _CERTIFICATE_ELEMENTS},
            "guess_proof": _ref("Proof"),
            "game_proof": _ref("Proof"),
        },
        additionalProperties=False,
    ),
    "Contract": _object(
        {
            "rules": {"type": "string"},
            "referee_id": _ref("Element"),
            "reward": _AMOUNT,
            "pot": _AMOUNT,
            "solution_hash": _ref("Element"),
            "master_id": _ref("Element"),
            "breaker_id": _nullable(_ref("Element")),
            "game_id": _nullable(_ref("Element")),
            "turn_count": {"type": "integer"},
            "guesses": {"type": "array", "items": _CODE},
            "clues": {"type": "array", "items": _CODE},
            "is_solved": {"type": "boolean"},
            "winner": {"enum": ["master", "breaker", None]},
            "next_step": {"enum": ["join_game", "make_guess", "give_clue", None]},
            "finalize_slot": {"type": "integer"},
            "last_played_slot": {"type": "integer"},
            "may_claim": {"enum": ["master", "breaker", None]},
            "packed": _ref("Element"),
        }
    ),
    "MatchContract": _object(
        {
            "rules": {"type": "string"},
            "referee_id": _ref("Element"),
            "reward": _AMOUNT,
            "pot": _AMOUNT,
            "players": _pair(_nullable(_ref("Element"))),
            "boards": _pair(_ref("Board")),
            "last_played_slot": {"type": "integer"},
            "next": _nullable(
                _object({"player": _ref("Side"), "step": {"enum": ["join_game", "make_guess", "give_clue"]}})
            ),
            "outcome": {"enum": [result.name.lower() for result in Outcome]},
            "paid": {"type": "array", "items": _ref("Side"), "maxItems": 2},
            "codes": _pair(_nullable(_CODE)),
            "may_claim": _nullable(_ref("Side")),
            "packed": _ref("Element"),
        },
        description="A match. `boards[p]` is the game in which player p breaks; `codes` are opened after the end.",
    ),
    "Side": {"enum": [HOST, GUEST], "description": "A player of a match: 0 the host, who guesses first, 1 the guest."},
    "Board": _object(
        {
            **{name: _nullable(_ref("Element")) for name in ("solution_hash", "master_id", "breaker_id", "game_id")},
            "turn_count": {"type": "integer"},
            "guesses": {"type": "array", "items": _CODE},
            "clues": {"type": "array", "items": _CODE},
        }
    ),
    "GameAnswer": _answer("game", "Contract"),
    "Game": _now("game", "Contract"),
    "Games": _object({"games": {"type": "array", "items": _ref("Game")}, "more": {"type": "boolean"}}),
    "MatchAnswer": _answer("match", "MatchContract"),
    "Match": _now("match", "MatchContract"),
    "Matches": _object({"matches": {"type": "array", "items": _ref("Match")}, "more": {"type": "boolean"}}),
    "Player": _object({"player_id": _ref("Element"), "credits": _AMOUNT, "games": {"type": "integer"}}),
    "Error": _object(
        {
            "error": _object(
                {
                    "refusal": {
                        "type": "string",
                        "description": "Why, in one word for programs: "
                        + ", ".join(name.lower() for name in Refusal.__members__)
                        + ", unknown_game, proof_rejected, nonce_used, unknown_key_set, development_keys, "
                        "sole_contributor, steps_missing, too_many_games, too_many_requests, too_many_watchers, "
                        "too_large, malformed, not_found, internal.",
                    },
                    "message": {"type": "string", "description": "Why, in one sentence for people."},
                    "field": _nullable({"type": "string"}),
                },
                required=["refusal", "message"],
            )
        }
    ),
    "InitGame": _object(
        {
            "rules": {"type": "string"},
            "key_set_id": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "reward": _AMOUNT,
            "step": _step("open_game", 2),
            "consent": _ref("Consent"),
        }
    ),
    "AcceptGame": _object({"reward": _AMOUNT, "step": _step("join_game", 2), "consent": _ref("Consent")}),
    "MakeGuess": _object({"step": _step("make_guess", 6)}),
    "GiveClue": _object({"step": _step("give_clue", 5)}),
    "SubmitGameProof": _object({"certificate": _ref("Certificate")}),
    "ClaimReward": _object({"player_id": _ref("Element"), "amount": _AMOUNT, "consent": _ref("Consent")}),
    "ForfeitWin": _object(
        {
            "referee_id": _ref("Element"),
            "winner": {"enum": ["master", "breaker"]},
            "amount": _AMOUNT,
            "consent": _ref("Consent"),
        }
    ),
    "Settle": _object({"player_id": _ref("Element"), "consent": _ref("Consent")}),
    "JoinMatch": _object(
        {
            "reward": _AMOUNT,
            "opening": _step("open_game", 2),
            "step": _step("join_game", 2),
            "consent": _ref("Consent"),
        }
    ),
    "StartMatch": _object({"player_id": _ref("Element"), "step": _step("join_game", 2), "consent": _ref("Consent")}),
    "PlayStep": _object({"step": {"oneOf": [_step("make_guess", 6), _step("give_clue", 5)]}}),
    "ForfeitMatch": _object(
        {"referee_id": _ref("Element"), "winner": _ref("Side"), "amount": _AMOUNT, "consent": _ref("Consent")}
    ),
    "OpenCode": _object(
        {
            "public": {"type": "array", "items": _ref("Element"), "minItems": 5, "maxItems": 5},
            "proof": _ref("Proof"),
        }
    ),
}

_OPENING_EXAMPLE = {
    "rules": _RULES_EXAMPLE,
    "key_set_id": _KEY_SET_EXAMPLE,
    "reward": 50,
    "step": _step_example("open_game", 2),
    "consent": _CONSENT_EXAMPLE,
}
_CLAIM_EXAMPLE = {"player_id": "1", "amount": 100, "consent": _CONSENT_EXAMPLE}

#: By method: the schema of its request, and an example.
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "init_game": ("InitGame", _OPENING_EXAMPLE),
    "accept_game": (
        "AcceptGame",
        {"reward": 50, "step": _step_example("join_game", 2), "consent": _CONSENT_EXAMPLE},
    ),
    "make_guess": ("MakeGuess", {"step": _step_example("make_guess", 6)}),
    "give_clue": ("GiveClue", {"step": _step_example("give_clue", 5)}),
    "submit_game_proof": (
        "SubmitGameProof",
        {
            "certificate": {
                "format": "mastermind certificate 1",
                "rules": _RULES_EXAMPLE,
                "key_set_id": _KEY_SET_EXAMPLE,
                **dict.fromkeys(_CERTIFICATE_ELEMENTS, "1"),
                "guess_proof": _PROOF_EXAMPLE,
                "game_proof": _PROOF_EXAMPLE,
            }
        },
    ),
    "claim_reward": ("ClaimReward", _CLAIM_EXAMPLE),
    "forfeit_win": (
        "ForfeitWin",
        {"referee_id": "1", "winner": "master", "amount": 100, "consent": _CONSENT_EXAMPLE},
    ),
    "settle": ("Settle", {"player_id": "1", "consent": _CONSENT_EXAMPLE}),
    "open_match": ("InitGame", _OPENING_EXAMPLE),
    "join_match": (
        "JoinMatch",
        {
            "reward": 50,
            "opening": _step_example("open_game", 2),
            "step": _step_example("join_game", 2),
            "consent": _CONSENT_EXAMPLE,
        },
    ),
    "start_match": (
        "StartMatch",
        {"player_id": "1", "step": _step_example("join_game", 2), "consent": _CONSENT_EXAMPLE},
    ),
    "play_step": ("PlayStep", {"step": _step_example("make_guess", 6)}),
    "claim_match": ("ClaimReward", _CLAIM_EXAMPLE),
    "forfeit_match": (
        "ForfeitMatch",
        {"referee_id": "1", "winner": HOST, "amount": 100, "consent": _CONSENT_EXAMPLE},
    ),
    "settle_match": ("Settle", {"player_id": "1", "consent": _CONSENT_EXAMPLE}),
    "open_code": ("OpenCode", {"public": ["1"] * 5, "proof": _PROOF_EXAMPLE}),
}

_REFUSALS = {
    "400": "malformed: `field` names the bad part",
    "402": "insufficient_credit",
    "403": "somebody else's move, claim or decision",
    "404": "unknown_game",
    "409": "not in this state, turn or slot; or a replay",
    "413": "too_large: the body has more bytes than a request can need",
    "422": "a proof does not show what it should, or shows what does not fit",
    "429": "too_many_requests (see Retry-After) or too_many_games",
}


def request_body(method: str) -> dict[str, Any]:
    """The `requestBody` of a method."""
    name, example = REQUESTS[method]
    return {"required": True, "content": {"application/json": {"schema": _ref(name), "example": example}}}


def responses(schema: str | None, *statuses: str, media_type: str = "application/json") -> dict[int | str, Any]:
    """The documented answers of an operation: 200, and the refusals with these statuses."""
    content = {} if schema is None else {"schema": _ref(schema)}
    documented: dict[int | str, Any] = {200: {"description": "Done", "content": {media_type: content}}}
    for status in statuses:
        documented[int(status)] = {
            "description": _REFUSALS[status],
            "content": {"application/json": {"schema": _ref("Error")}},
        }
    documented["default"] = {"description": "Refused", "content": {"application/json": {"schema": _ref("Error")}}}
    return documented
