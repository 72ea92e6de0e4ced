# Completion of mpsforge for bash. Once: source <(mpsforge completion bash)
_mpsforge() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files) compopt -o default 2>/dev/null ;;
      :folders) compopt -o dirnames 2>/dev/null ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("${1/#\~/$HOME}" __complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
if type compopt >/dev/null 2>&1; then
  complete -F _mpsforge mpsforge
else # bash 3.2, which macOS has: file names wherever mpsforge has no words
  complete -o default -F _mpsforge mpsforge
fi
