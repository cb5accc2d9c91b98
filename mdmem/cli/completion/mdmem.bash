_mdmem_completion() {
    local IFS=$'\n' type value special
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                # A name of a file may hold anything, and bash puts in what it is given.
                case ${COMP_WORDS[COMP_CWORD]} in
                    \'*) value=${value//\'/"'\\''"} ;;
                    \"*)
                        for special in \\ \" \$ \`; do
                            value=${value//"$special"/"\\$special"}
                        done
                        value=${value//\!/"\"'!'\""} ;;
                    *) printf -v value %q "$value" ;;
                esac
                COMPREPLY+=("$value") ;;
        esac
    done < <(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD _MDMEM_COMPLETE=bash_complete "$1")
}

complete -o nosort -F _mdmem_completion mdmem
