# Completion of vm-trace in bash. Commands, options and their arguments come from the tool's own --help.

# The arguments of an option, if its help lists them: "csv (default), table or json"
_vm_trace_choices() {
    "$1" "$2" --help 2>/dev/null | sed -n -e '/^Options:/,/^$/!d' \
        -e "s/^  \(-., \|    \)--$3=\(FORMAT\|KIND\|WEIGHT\)  *//" -e 't list' -e d \
        -e ':list' -e '/ or$/{N;s/\n  */ /;}' -e 's/([^)]*)//g; s/,/ /g; s/ or / /gp'
}

_vm_trace() {
    local tool=$1 cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words
    COMPREPLY=()
    # bash splits `--format=json` into three words
    if [ "$cur" = = ]; then
        cur=
    elif [ "$previous" = = ]; then
        previous=${COMP_WORDS[COMP_CWORD-2]}
    fi
    if [ "$COMP_CWORD" -eq 1 ] || { [ "$COMP_CWORD" -eq 2 ] && [ "$command" = help ]; }; then
        words=$("$tool" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\)  .*/\1/p')
        [ "$COMP_CWORD" -eq 1 ] && words+=' help --help --version'
    elif [[ $previous == --* ]] && words=$(_vm_trace_choices "$tool" "$command" "${previous#--}") && [ -n "$words" ]; then
        :
    elif [[ $cur == -* ]]; then
        words=$("$tool" "$command" --help 2>/dev/null |
            sed -n '/^Options:/,/^$/s/^  \(-., \|    \)\(--[a-z-]*=\{0,1\}\).*/\2/p')
        [[ $words == *=* ]] && compopt -o nospace 2>/dev/null
    else
        return # files
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
    # Add a blank after a command, and after an option without an argument.
    [ "${#COMPREPLY[@]}" -eq 1 ] && [[ ${COMPREPLY[0]} != *= ]] && compopt +o nospace 2>/dev/null
    return 0
}

complete -o default -F _vm_trace vm-trace
