# bash completion for sonde. The verbs are listed here; what a verb can do is asked of
# `sonde VERB --help`, so that it is never out of date.

_sonde_options() {
    "$1" "$2" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]+' | sort -u
}

# Names and ids of runs, in front of the short references.
_sonde_runs() {
    echo @last
    ls -- "${SONDE_DIR:-.sonde}/runs" 2>/dev/null
}

_sonde() {
    local verbs='run report compare check top doctor demo attach list show search
        trends log store baseline bench flops model scale export plot import
        recover help'
    local current=${COMP_WORDS[COMP_CWORD]}
    local verb=${COMP_WORDS[1]}
    local i
    COMPREPLY=()

    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "$verbs --help --version" -- "$current")
        return
    fi
    # Behind `--` another program's command line begins.
    if [[ $verb == run || $verb == bench || $verb == check || $verb == baseline ]]; then
        for ((i = 2; i < COMP_CWORD; i++)); do
            if [[ ${COMP_WORDS[i]} == -- ]]; then
                if declare -F _command_offset >/dev/null; then
                    _command_offset $((i + 1))
                else
                    mapfile -t COMPREPLY < <(compgen -c -f -- "$current")
                fi
                return
            fi
        done
    fi
    if [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(
            compgen -W "$(_sonde_options "${COMP_WORDS[0]}" "$verb")" -- "$current"
        )
        return
    fi
    case $verb in
    report | compare | top | show | export | plot | recover)
        mapfile -t COMPREPLY < <(compgen -f -W "$(_sonde_runs)" -- "$current")
        ;;
    help)
        mapfile -t COMPREPLY < <(compgen -W "$verbs all" -- "$current")
        ;;
    run | bench)
        mapfile -t COMPREPLY < <(compgen -c -f -- "$current")
        ;;
    esac
}

complete -o filenames -F _sonde sonde
