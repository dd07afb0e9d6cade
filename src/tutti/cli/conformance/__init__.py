"""`tutti conformance`: compares Tutti with recorded answers; `tutti.conformance` reads and runs the cases.

- `command`            Which options are there, what is printed, and what is the exit code?
- `decision_table`     What does the table of decisions show, and how is a difference printed?
- `purchase_table`     What does the table of purchases show, and which purchase fails the comparison?
- `native_gang_table`  What does the table of arriving gangs show, and which arrivals are listed?
- `model_agreement`    What does --model do? `model_table` is its table.
- `case_lines`         How are the lines of all files run, and when in several processes?
- `worker_processes`   How is work spread over processes with the results in order?
"""
