"""The constants of ranked search; `bench/retrieval.py` measures what each is worth."""

from __future__ import annotations

# -- a memory as a whole --------------------------------------------------------------------------------------

# How much of a word's weight a memory has for holding it at all; the rest grows with how often.
PRESENCE = 0.5
# What the rarity of a word among passages adds to that among memories.
RARITY_IN_PASSAGES = 0.6
# A word in these, beside one in the text.
TITLE = 1.0
HEADINGS = 0.5
TAGS = 1.0
# How many memories are looked into further: so many, or so many more than asked for. It finds the same as 60.
CANDIDATES = 20
SPARE = 10

# -- its passages ---------------------------------------------------------------------------------------------

PASSAGE_PRESENCE = 0.4
# A word in the headings above a passage.
HEADING = 0.25
# Two words of the query that stand by each other in a passage, with so many others between them at most.
PAIR = 0.6
PAIR_GAP = 2
MOST_PAIRS = 8
MOST_PASSAGES = 1_000

# -- both together --------------------------------------------------------------------------------------------

# What the best passage adds to a memory, and what stands one and two passages away to that.
BEST_PASSAGE = 0.45
NEIGHBOURS = (0.35, 0.1)
# What the memory adds to a passage, where passages are ranked, and what stands around it.
MEMORY = 1.2
PASSAGE_NEIGHBOURS = (0.5, 0.3, 0.15)

# -- priors ---------------------------------------------------------------------------------------------------

# What a memory of today has more than a very old one, and how many days halve that.
RECENCY = 0.05
RECENCY_DAYS = 90
# What a memory of confidence 0 loses.
CONFIDENCE = 0.1
