#!/bin/sh
# The main job on real files: mdmem's own memory, copied aside, so that the checkout stays as it is.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "$here/.venv/demo.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp -R "$here/memories" "$here/AGENTS.md" "$here/README.md" "$here/CONTRIBUTING.md" "$here/docs" "$work"
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
run rules list --for mdmem/text/edit.py

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
run replace --in notes/decisions --glob '*.md' 'status: accepted' 'status: superseded' --yes

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

say '8. All is well'
run check
run doctor
cmp "$here/memories/notes/decisions/journal.md" memories/notes/decisions/journal.md
echo 'every byte is as before'
