"""`tutti recommend`: prints which nodes to buy and to remove; the use case is `app.recommend`.

- `command`       Which options are there, and what is printed in which format?
- `down_options`  Which options does --down have?
- `inputs`        How do the files of -f, --pools and --prices become a request?
- `advice`        What does -o advice print? A ScalingAdvice of gardener/scaling-advisor.
- `write_report`  How does --report write the page of `present.report`?
"""
