"""The command line: one subpackage for each command.

A command parses its options, calls a use case in `tutti.app`, and prints the result with `tutti.present`.

- `main`      How is a command found and run, and which exit code does an error have?
- `options`   Which options do commands share?
- `loading`   How are files read, and where do notes and the spinner go?
- `printing`  How is an answer printed, and what is coloured?
- Commands: `schedule`, `explain`, `recommend`, `recommender` (the HTTP service), `scalesim`, `replay`, `conformance`,
  `demo`, `completion`, `version`.
"""
