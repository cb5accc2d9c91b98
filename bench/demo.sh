#!/bin/sh
# The main job on real files: mdmem's own memory, copied aside, so that the checkout stays as it is.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "$here/.venv/demo.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp -R "$here/memories" "$here/AGENTS.md" "$here/README.md" "$here/docs" "$work"
rm -rf "$work/memories/.mdmem/local" # a clone has none
git init --quiet "$work" # the copy is its own workspace
cd "$work"
unset MDMEM_VAULT MDMEM_USER MDMEM_PROJECT
export XDG_STATE_HOME="$work/state" XDG_CACHE_HOME="$work/cache" # nothing is left in your own

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
run() {
    printf '$ mdmem'
    for word; do
        case $word in
        *[!A-Za-z0-9_./=-]*) printf " '%s'" "$word" ;;
        *) printf ' %s' "$word" ;;
        esac
    done
    printf '\n'
    mdmem "$@"
}
refused() {
    if run "$@"; then
        echo "this should have been refused" >&2
        exit 1
    fi
}

say '1. Find: every hit has its heading and its date'
run grep 'one step' --limit 3
run search 'how is a lock held' --limit 2
run ls --where type=decision --where status=accepted --sort -title
run rules list --for mdmem/document/edit.py

say '2. Edit: only the bytes that are named'
run replace notes/decisions/flock.md 'Linux and macOS are supported.' 'Linux and macOS.' --dry-run
run replace notes/decisions/flock.md 'Linux and macOS are supported.' 'Linux and macOS.'
run set notes/decisions/flock.md 'tags=[lock, vault]'
run project append Conventions 'Ask before you add a dependency.'

say '3. Refused by a schema: nothing is written'
refused set notes/decisions/flock.md status=maybe confidence=7

say '4. Render a template'
run new decision notes/decisions/demo.md --var title='Show it' --var decision='A demo is run, not described.'
run show notes/decisions/demo.md

say '5. Replace across files: the diff first, then all of them or none'
run replace --in notes/decisions --glob '*.md' --all 'status: accepted' 'status: superseded' --yes

say '6. Undo'
run undo
run undo --dry-run
run history --limit 4

say '7. Move: every link follows, there and back'
run append notes/decisions/demo.md 'It stands on [[flock]] and on [the journal](journal.md#Decision).'
run mv notes/decisions/journal.md notes/archive/
run show notes/decisions/demo.md
run backlinks notes/archive/journal.md
run mv notes/archive/journal.md notes/decisions/

say '8. A conversation: two writers at once, and one of them is killed'
writer='
import sys, mdmem
sessions = mdmem.open("memories").sessions
for number in range(100_000):
    sessions.add("talk", "user", f"{sys.argv[1]} says {number}: the backup of disk {number} runs at {number % 24}:00.")
'
python -c "$writer" Ann & ann=$!
python -c "$writer" Ben & ben=$!
until mdmem sessions history talk --limit 1 --json 2>/dev/null | grep -q '"seq": [0-9][0-9][0-9]' &&
    mdmem sessions history talk | grep -q '^Ben says'; do :; done
kill -9 $ann
kill $ben
wait $ann $ben 2>/dev/null || true
run sessions check
python -c 'import mdmem; mdmem.open("memories").sessions.truncate("talk", 60)'
run sessions compact talk --budget 1200
summary=$(mdmem sessions assemble talk 2000 --json |
    python -c 'import json, sys; print(json.load(sys.stdin)["summaries"][0])')
run sessions search 'when does the backup of disk 40 run' talk --limit 1
run sessions expand talk "$summary" --budget 200
run sessions summarize talk

say '9. What a conversation leaves behind, and what a tool printed; no model is asked'
run sessions add review user 'Please always use tabs for indentation. How is the vault locked?'
run sessions add review assistant 'We decided to use flock, because a crash gives it back.'
python -c 'import mdmem; mdmem.open("memories").observations.observe("review")'
run sessions observations review
run sessions capture review --policy inbox
proposal=$(mdmem inbox list --json |
    python -c 'import json, sys; print(next(json.loads(line)["id"] for line in sys.stdin if "tabs" in line))')
run inbox show "$proposal"
run inbox accept "$proposal"
run undo
python -c 'for n in range(5_000): print("ERROR: disk full" if n == 2_500 else f"step {n} is done")' >"$work/log"
run results compress --tool Bash <"$work/log"
hash=$(python -c 'import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' "$work/log")
run results recover "$hash" --lines 2500-2502
mdmem results recover "$hash" | cmp - "$work/log"
echo 'every byte of the log came back'

say '10. Review in git: by fact, and one fact is taken back'
git -C "$work" config user.name demo
git -C "$work" config user.email demo@localhost
run git commit -m 'Begin with what is known'
run --actor claude append notes/decisions/flock.md 'Eight writers were tried.'
run git diff
run git commit
run git blame notes/decisions/flock.md
run git revert 'notes/decisions/flock.md:Eight writers'
run git diff

say '11. What counts now, what counted last week, and why'
last_week=$(python -c 'import datetime as d; print(d.datetime.now(d.UTC).date() - d.timedelta(7))')
text=$(printf -- '---\nvalid_from: %s\n---\n# Locks are leases\n\nA lock is held for a minute at most.\n' "$(date -u +%F)")
run write notes/decisions/leases.md "$text" --supersedes notes/decisions/flock.md
run search 'how is a lock held' --limit 1
run search 'how is a lock held' --limit 1 --as-of "$last_week"
run why notes/decisions/flock.md
run undo
run search 'how is a lock held' --limit 1

say '12. What is said twice stands once: a proposal, accepted, and undone'
python -c 'import re; t = open("memories/notes/decisions/flock.md").read(); open("memories/notes/locking.md", "w").write(re.sub("(?s)^---.*?---", "", t) + "\nA lock file was tried before.\n")'
run duplicates
run consolidate
proposal=$(mdmem inbox list --json | python -c 'import json, sys; print(next(json.loads(line)["id"] for line in sys.stdin if "supersede" in line))')
run inbox show "$proposal"
run inbox accept "$proposal"
run undo
mdmem inbox reject "$proposal" >/dev/null
mdmem rm notes/locking.md >/dev/null

say '13. All is well'
run check
run doctor
cmp "$here/memories/notes/decisions/journal.md" memories/notes/decisions/journal.md
echo 'every byte is as before'
