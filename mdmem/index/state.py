"""The state of a reference: whether what it points at is there, and is what it was."""

OK = "ok"
UNCHANGED = "unchanged"
MOVED = "moved"
CHANGED = "changed"
GONE = "gone"
DANGLING = "dangling"
AMBIGUOUS = "ambiguous"
UNKNOWN = "unknown"

# From the worst to the best: a reference is in the worst state of its places.
STATES = (DANGLING, GONE, CHANGED, AMBIGUOUS, MOVED, UNKNOWN, UNCHANGED, OK)
STALE = frozenset((GONE, CHANGED, MOVED))
BROKEN = STALE.union((DANGLING, AMBIGUOUS))
