function _mdmem_completion
    for answer in (env _MDMEM_COMPLETE=fish_complete COMP_WORDS=(commandline -cp) \
            COMP_CWORD=(commandline -t) mdmem)
        set -l parts (string split --max 1 "," $answer)
        switch $parts[1]
            case dir
                __fish_complete_directories $parts[2]
            case file
                __fish_complete_path $parts[2]
            case plain
                printf '%s\n' $parts[2]
        end
    end
end

complete --no-files --command mdmem --arguments "(_mdmem_completion)"
