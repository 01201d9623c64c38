"""Defaults of each profile, visible in the engine's command line and frozen with it.

Changing a number here changes new revisions only; running workers keep what was rendered for them.
"""

from dataclasses import dataclass

from tandem_api.inferenceservice import Profile
from tandem_api.names import Role

__all__ = ["Numbers", "defaults"]


@dataclass(frozen=True, slots=True)
class Numbers:
    """How much one worker computes at once."""

    batched_tokens: int
    """Tokens in one step: many for prefill (compute-bound), few for decode (a step's length is every stream's TPOT)."""
    sequences: int
    """Requests at once."""


_TABLE: dict[Profile, dict[Role, Numbers]] = {
    Profile.CHAT: {
        Role.PREFILL: Numbers(8192, 64),
        Role.DECODE: Numbers(2048, 256),
        Role.AGGREGATED: Numbers(4096, 256),
    },
    Profile.LONG_DOCUMENT: {
        Role.PREFILL: Numbers(32768, 16),
        Role.DECODE: Numbers(2048, 128),
        Role.AGGREGATED: Numbers(8192, 64),
    },
    Profile.BATCH: {
        Role.PREFILL: Numbers(16384, 256),
        Role.DECODE: Numbers(4096, 512),
        Role.AGGREGATED: Numbers(16384, 512),
    },
    Profile.AGENTS: {
        Role.PREFILL: Numbers(8192, 128),
        Role.DECODE: Numbers(2048, 384),
        Role.AGGREGATED: Numbers(8192, 256),
    },
}


def defaults(profile: Profile, role: Role) -> Numbers:
    """Return the numbers that a role has unless the spec says otherwise."""
    return _TABLE[profile][role]
