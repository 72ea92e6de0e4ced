# Completion of mpsforge for fish. Once: mpsforge completion fish | source
function __mpsforge_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l flag (string match -r -- '^--[^=]*=' $current)
    for line in ($words[1] __complete fish $words[2..-1] $current 2>/dev/null)
        switch $line
            case ':files'
                for path in (__fish_complete_path (string replace -r -- '^--[^=]*=' '' $current))
                    echo -- "$flag$path"
                end
            case ':folders'
                for path in (__fish_complete_directories (string replace -r -- '^--[^=]*=' '' $current) '')
                    echo -- "$flag$path"
                end
            case '*'
                echo -- $line
        end
    end
end
complete -c mpsforge -f -a '(__mpsforge_complete)'
