"""`tutti conformance`; recorded cases are read and run by `tutti.conformance`.

- `command`           the click command, and the table of decisions
- `model_agreement`   --model: runs the models of autoscalers; `model_table` is its table
- `purchase_table`    the table of purchases
- `case_lines`        the lines of all files, in one process or several; `worker_processes` has the processes
"""
