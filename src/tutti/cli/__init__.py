"""The command line: one folder for each command; `main` finds a command, runs it, and turns errors into exit codes.

- `options`   options that commands share: -f, -n, -o, --profile
- `loading`   reads files with a spinner on a terminal, and prints notes to standard error
- `printing`  prints answers to standard output, in colour on a terminal

A command parses arguments, calls its use case in `tutti.app`, and prints with `tutti.present`.
"""
