"""The command line: one folder per command; `main` finds and runs them.

`options` are options that commands share, `loading` reads files with a spinner on a terminal.
"""
