#compdef mpsforge
# Completion of mpsforge for zsh. Once: source <(mpsforge completion zsh), after compinit
_mpsforge() {
  local line about paths
  local -a described
  for line in "${(@f)$("${words[1]/#\~/$HOME}" __complete zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
    case $line in
      :*) paths=${line#:} ;;
      ?*)
        about=${line#*$'\t'}
        described+=("${${line%%$'\t'*}//:/\\:}${about:+:$about}")
        ;;
    esac
  done
  (( $#described )) && _describe mpsforge described
  [[ -z $paths ]] && return
  compset -P '--*='
  case $paths in
    files) _files ;;
    folders) _path_files -/ ;; # _files would fall back to other files
  esac
}
if [[ $funcstack[1] == _mpsforge ]]; then # loaded from $fpath by the first TAB
  _mpsforge "$@"
else
  compdef _mpsforge mpsforge
fi
