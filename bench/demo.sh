#!/bin/sh
# What mdmem does, in a repository of its own: each scene is the commands as typed, and what they print.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "$here/.venv/demo.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/app"
cd "$work/app"
unset MDMEM_VAULT MDMEM_USER MDMEM_PROJECT MDMEM_ACTOR XDG_CONFIG_HOME
# Nothing is left in your own folders, and no setting of yours is read.
export HOME="$work" XDG_STATE_HOME="$work/state" XDG_CACHE_HOME="$work/cache" GIT_CONFIG_NOSYSTEM=1
git config --global user.name Ada
git config --global user.email ada@example.org
git config --global init.defaultBranch main

agent() { python "$here/bench/agent.py" "$@"; }
say() { printf '\n# %s\n' "$1"; }
run() {
    printf '$ %s\n' "$1"
    eval "$1"
}
refused() {
    if run "$1"; then
        echo "demo: this should have been refused" >&2
        exit 1
    fi
}

echo 'No agent is run here: `agent` is a script, bench/agent.py, that starts the hooks and the server of'
echo 'the settings, as Claude Code does. All that is printed is what they and mdmem really print.'

say '1. A repository with a vault, and an agent that is connected to it'
run 'git init --quiet && mdmem init | head -1'
run "mdmem install claude-code --yes | grep '^+++'"
run 'mdmem remember "Backups run at noon, and are kept for 30 days." --name backup --title Backup'
run 'mdmem git commit --message "Begin" >/dev/null'

say '2. The agent is given what fits a prompt, and writes down what it learns'
run 'agent UserPromptSubmit "When do the backups run?" | tail -n +3'
run 'agent replace path=notes/backup.md old="at noon" new="at midnight" | head -1'
run 'agent write path=notes/restore.md content="# Restore\n\nFirst stop [[backup]].\n" | head -1'

say '3. A wrong edit is refused, and nothing is written'
refused 'agent write path=rules/tabs.md content="---\npriority: high\n---\nUse tabs."'

say '4. A move: the links follow'
run 'mdmem mv notes/backup.md notes/ops/backups.md'
run 'tail -1 memories/notes/restore.md'

say '5. Two branches that git cannot merge, and mdmem can'
run 'mdmem git commit --message "What it learnt" >/dev/null && git switch --quiet --create agent'
run 'agent section path=notes/ops/backups.md where=append text="- Restored in an hour." >/dev/null'
run 'mdmem git commit --message "How long it takes" >/dev/null && git switch --quiet main'
run 'mdmem append notes/ops/backups.md "- Kept on two disks." >/dev/null'
run 'mdmem git commit --message "Where they are" >/dev/null && git merge agent | tail -1'
run 'git merge --abort && mdmem git install --yes >/dev/null 2>&1'
run 'git merge --quiet agent >/dev/null && tail -3 memories/notes/ops/backups.md'

say '6. Who made which fact'
run 'mdmem git blame notes/ops/backups.md'

say '7. Two notes that say the same are merged, and that is undone: every byte is as before'
run 'agent write path=notes/key.md content="Keys: Ada.\n\n$(head -4 memories/notes/ops/*)" | head -1'
run 'mdmem duplicates'
run 'mdmem consolidate'
run 'cp -r memories/notes before && mdmem inbox accept "$(basename memories/inbox/*.md .md)"'
run 'mdmem undo >/dev/null && diff -r before memories/notes && echo the same bytes'

say 'Try next, in a repository of yours, with .venv/bin of this folder on your PATH'
echo 'mdmem init'
echo 'mdmem install claude-code     # or codex, cursor, copilot-cli, gemini-cli, opencode, vscode, zed'
echo 'mdmem git review              # what the agent wrote: accept or reject each fact'
