"""A real small model on the CPU, in this process, without a key."""

from counterbalance.vendors.local.engine import (
    Generation,
    LocalEngine,
    NextToken,
    OptionLogprobs,
    Prompt,
    Usage,
    own_tokens,
)
from counterbalance.vendors.local.weights import KNOWN_WEIGHTS

__all__ = ["KNOWN_WEIGHTS", "Generation", "LocalEngine", "NextToken", "OptionLogprobs", "Prompt", "Usage", "own_tokens"]
