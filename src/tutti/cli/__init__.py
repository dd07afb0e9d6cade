"""The command line: one subpackage for each command.

A command parses its options, calls a use case in `tutti.app`, and prints the result with `tutti.present`.

- `main`             How is a command found and run, and which exit code does an error have?
- `options`          Which options do commands share?
- `loading`          How is the input read, and where do notes and the spinner go?
- `cluster_reading`  How is the cluster of a kubeconfig context read?
- `printing`         How is an answer printed, and what is coloured?
- Commands: `schedule`, `explain`, `recommend`, `dump`, `scheduler` (the live scheduler), `inspect`, `recommender` (the
  HTTP service), `scalesim`, `replay`, `conformance`, `demo`, `completion`, `version`.
"""
