"""The constants of ranked search, with what each is worth as `bench/retrieval.py` measures it.

"Without it" is what is found when the constant is 0 and nothing else changes: mean reciprocal rank, where
no other figure is named. LoCoMo is its development half; "words" and "heading" are documentation, looked for
by five words of a paragraph and by a heading that was taken out, "name" by a heading and the file's name.
"""

from __future__ import annotations

# -- a memory as a whole ------------------------------------------------------------------------------

# How much of a word's weight a memory has for holding it at all; the rest grows with how many of its passages
# do. With .7, turns of LoCoMo, recall at 10, are .756, not .760; with .5, heading .581, not .590.
PRESENCE = 0.35
# How much of a stop word's weight grows with how often a memory holds it, where there are other words; it has
# nothing for holding it at all. Without it, recall at 10 in LoCoMo .932, not .939.
COMMON = 0.4
# What the rarity of a word among passages adds to that among memories. Without it, heading .50, not .52;
# name .82, not .85.
RARITY_IN_PASSAGES = 0.6
# A word in these, beside one in the text. With twice as much in headings, words .79, not .83; with twice as
# much in the title, name .95, not .92, and words .80, not .83.
TITLE = 0.5
HEADINGS = 0.15
TAGS = 0.5
# How many memories are looked into further: so many, or so many more than asked for. 60 find the same.
CANDIDATES = 20
SPARE = 10
# In how many memories nearer words are looked for where nothing is found.
ALIKE = 8
# Of memories that hold the same words, the shorter ones are looked into: a memory of no length counts for so
# much more than a very long one, as a share of its score, and for half of that at so many code points.
BREVITY = 0.25
LONG_SIZE = 2_000
# How long a typical passage is, in code points: BM25 measures lengths by it. With 120, words .72, not .83.
TYPICAL = 700

# -- its passages -------------------------------------------------------------------------------------

# As PRESENCE. Without it, words .87, not .88; heading .51, not .52.
PASSAGE_PRESENCE = 0.4
# A word in the headings above a passage. Without it, name .84, not .85; with twice as much, words .85, not
# .88.
HEADING = 0.25
# Two words of the query that stand by each other in a passage, with so many others between them at most.
# Without it, LoCoMo .82, not .83; heading .50, not .52.
PAIR = 0.6
PAIR_GAP = 2
MOST_PAIRS = 8
# How many passages are looked at; those of 20 memories are rarely more.
MOST_PASSAGES = 1_000

# -- both together ------------------------------------------------------------------------------------

# What the best passage adds to a memory. Without it, LoCoMo .81, not .83; words .79, not .88.
BEST_PASSAGE = 0.45
# What a passage one, and two, away adds to it there. Without it, recall at 5 in LoCoMo is .879, not .880;
# with (0.35, 0.1) it is .883, and words .88, not .90.
NEIGHBOURS = (0.2, 0.05)
# What the memory adds to a passage, and what those one, two and three away do, where passages are ranked:
# turns of LoCoMo, recall at 10, are .73 without the one, .70 without the other, .76 with both.
MEMORY = 1.2
PASSAGE_NEIGHBOURS = (0.5, 0.3, 0.15)

# -- priors -------------------------------------------------------------------------------------------

# None of the sets tells these: they are small enough to settle only what is close. In the median, the first
# hit has a quarter more than the second; in one question of four, less than a thirteenth.
# What a memory of today has more than a very old one, as a share of its score, and how many days halve that.
RECENCY = 0.05
RECENCY_DAYS = 90
# What a memory loses of it for each namespace that it is further away than the own one.
LAYER = 0.02
# What a memory of confidence 0 loses of it.
CONFIDENCE = 0.1
